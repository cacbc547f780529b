# SPDX-License-Identifier: Apache-2.0
"""Renders our kustomizations as `kubectl kustomize` does, so that they can be checked where there is no kubectl.

Knows what our files use and refuses the rest: resources, namespace, labels, images, strategic patches by path, and
configMapGenerator with the hash of the content in the name.

    python -m deploy.kubernetes.render FOLDER
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

KNOWN = {"apiVersion", "kind", "resources", "namespace", "labels", "images", "patches", "configMapGenerator"}
CLUSTER_WIDE = {"Namespace"}
# By which key the elements of a list are told apart in a patch; other lists are replaced.
MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
}


class Unknown(Exception):
    """A key of a kustomization that is not rendered here."""


def render(folder: Path) -> list[Document]:
    """All documents of a folder with a kustomization.yaml, in no certain order."""
    plan = yaml.safe_load((folder / "kustomization.yaml").read_text())
    if strange := set(plan) - KNOWN:
        raise Unknown(f"{folder}: {', '.join(sorted(strange))}")
    documents: list[Document] = []
    for name in plan.get("resources", []):
        path = folder / name
        documents += render(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for patch in plan.get("patches", []):
        _patch(documents, yaml.safe_load((folder / patch["path"]).read_text()))
    for generator in plan.get("configMapGenerator", []):
        _config_map(documents, folder, generator)
    # What was added here may refer to a map that was generated below.
    for document in [one for one in documents if one["kind"] == "ConfigMap"]:
        _rename(documents, document["metadata"]["name"].rsplit("-", 1)[0], document["metadata"]["name"])
    for document in documents:
        if "namespace" in plan and document["kind"] not in CLUSTER_WIDE:
            document["metadata"]["namespace"] = plan["namespace"]
        for labels in plan.get("labels", []):
            document["metadata"].setdefault("labels", {}).update(labels["pairs"])
    for image in plan.get("images", []):
        _image(documents, image)
    return documents


def _patch(documents: list[Document], patch: Document) -> None:
    for index, document in enumerate(documents):
        if (document["kind"], document["metadata"]["name"]) == (patch["kind"], patch["metadata"]["name"]):
            if patch.get("$patch") == "delete":
                del documents[index]
            else:
                documents[index] = _merge(document, patch)
            return
    raise Unknown(f"a patch of {patch['kind']} {patch['metadata']['name']}, which is not there")


def _merge(old: Any, new: Any, name: str = "") -> Any:  # noqa: ANN401
    if isinstance(old, dict) and isinstance(new, dict):
        merged = dict(old)
        for key, value in new.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = _merge(old.get(key), value, key)
        return merged
    key = MERGE_KEYS.get(name)
    if key is None or not isinstance(old, list):
        return new
    by_name = {element[key]: element for element in old}
    for element in new:
        by_name[element[key]] = _merge(by_name.get(element[key]), element)
    return list(by_name.values())


def _config_map(documents: list[Document], folder: Path, generator: Document) -> None:
    data = {name: (folder / name).read_text() for name in generator["files"]}
    old = generator["name"]
    new = f"{old}-{_hash(data)}"
    _rename(documents, old, new)
    documents.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": new}, "data": data})


def _rename(documents: list[Document], old: str, new: str) -> None:
    for volume in _every(documents, "configMap"):
        if volume.get("name") == old:
            volume["name"] = new


def _hash(data: dict[str, str]) -> str:
    """As kustomize's hasher: SHA-256 of the canonical JSON (without the name), with vowels and lookalikes replaced."""
    text = json.dumps({"data": data, "kind": "ConfigMap", "name": ""}, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:10].translate(str.maketrans("013ae", "ghkmt"))


def _image(documents: list[Document], image: Document) -> None:
    for container in _containers(documents):
        name = container["image"].split("@")[0].split(":")[0]
        if name == image["name"]:
            container["image"] = f"{image.get('newName', name)}:{image['newTag']}"


def _containers(documents: list[Document]) -> list[Document]:
    return [container for key in ("containers", "initContainers") for group in _every(documents, key) for container in group]


def _every(tree: Any, key: str) -> list[Any]:  # noqa: ANN401
    """All values of a key, however deep."""
    if isinstance(tree, list):
        return [found for element in tree for found in _every(element, key)]
    if not isinstance(tree, dict):
        return []
    here = [tree[key]] if key in tree else []
    return here + [found for value in tree.values() for found in _every(value, key)]


if __name__ == "__main__":
    yaml.safe_dump_all(render(Path(sys.argv[1])), sys.stdout, sort_keys=False)
