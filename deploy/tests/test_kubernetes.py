# SPDX-License-Identifier: Apache-2.0
"""The manifests as they are rendered: each document against its schema, and what they must say together."""

from __future__ import annotations

import copy
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from deploy.kubernetes.render import Unknown, render

TOP = Path(__file__).parents[2]
KUBERNETES = TOP / "deploy/kubernetes"
# helm and kubectl: deploy/kubernetes/tools.py.
TOOLS = TOP / ".build/kubernetes-tools"
FOLDERS = ["base", "overlays/example"]
# The oldest and the newest that are tried.
VERSIONS = ["1.29", "1.37"]


def rendered(folder: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {(one["kind"], one["metadata"]["name"]): one for one in render(KUBERNETES / folder)}


def pods(documents: dict[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in documents.values() if one["kind"] in ("Deployment", "Job")]


def validate(document: dict[str, Any], version: str) -> None:
    own = KUBERNETES / "schemas" / f"{document['kind']}.json"
    if own.exists():
        jsonschema.Draft202012Validator(json.loads(own.read_text())).validate(document)
    else:
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_document_fits_its_schema(folder: str, version: str) -> None:
    for document in render(KUBERNETES / folder):
        validate(document, version)


def test_a_wrong_key_anywhere_is_found() -> None:
    spoiled = 0
    for document in render(KUBERNETES / "overlays/example"):
        if "spec" not in document:
            continue
        document = copy.deepcopy(document)
        document["spec"]["thisIsNoField"] = 1
        with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
            validate(document, VERSIONS[-1])
        spoiled += 1
    assert spoiled >= 8


@pytest.mark.parametrize("folder", FOLDERS)
def test_kubectl_renders_the_same(folder: str) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("deploy/kubernetes/tools.py has kubectl for x86-64 only")
    command = [TOOLS / "kubectl", "kustomize", str(KUBERNETES / folder)]
    text = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text.stdout)}
    assert theirs == rendered(folder)


def test_what_the_renderer_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("namePrefix: x-\n")
    with pytest.raises(Unknown):
        render(tmp_path)


@pytest.mark.parametrize("folder", FOLDERS)
def test_pods_ask_for_no_more_than_the_restricted_profile(folder: str) -> None:
    for pod in pods(rendered(folder)):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC", "hostAliases"}
        assert {kind for volume in pod["volumes"] for kind in volume.keys() - {"name"}} <= {
            "configMap",
            "secret",
            "emptyDir",
        }
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"].keys() == {"cpu", "memory"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_selectors_meet_the_pods_and_nothing_dangles(folder: str) -> None:
    documents = rendered(folder)
    deployment = documents["Deployment", "carillon"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    worker = {"app.kubernetes.io/component": "worker"}
    assert worker.items() <= labels.items()
    assert deployment["selector"]["matchLabels"] == worker
    assert documents["PodDisruptionBudget", "carillon"]["spec"]["selector"]["matchLabels"] == worker
    assert documents["Service", "carillon"]["spec"]["selector"] == worker
    assert documents["NetworkPolicy", "carillon"]["spec"]["podSelector"]["matchLabels"] == worker
    job = documents["Job", "carillon-topics"]["spec"]["template"]["metadata"]["labels"]
    topics = documents["NetworkPolicy", "carillon-topics"]["spec"]["podSelector"]["matchLabels"]
    assert topics.items() <= job.items()
    volumes = {volume["name"]: volume for volume in deployment["template"]["spec"]["volumes"]}
    assert ("ConfigMap", volumes["config"]["configMap"]["name"]) in documents


def test_the_overlay_fits_to_the_base() -> None:
    documents = rendered("overlays/example")
    monitor = documents["ServiceMonitor", "carillon"]["spec"]
    service = documents["Service", "carillon"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert {endpoint["port"] for endpoint in monitor["endpoints"]} == {port["name"] for port in service["spec"]["ports"]}
    scaled = documents["ScaledObject", "carillon"]["spec"]
    deployment = documents["Deployment", "carillon"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == "carillon"
    assert "replicas" not in deployment, "an apply would undo what KEDA decided"
    shards = yaml.safe_load(config(documents))["shards"]
    env = {
        one["name"]: one["value"]
        for one in documents["Job", "carillon-topics"]["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    assert scaled["maxReplicaCount"] * shards <= int(env["PARTITIONS"])
    assert {one["metadata"].get("namespace") for one in documents.values() if one["kind"] != "Namespace"} == {"carillon"}


def config(documents: dict[tuple[str, str], dict[str, Any]]) -> str:
    return next(one["data"]["carillon.yaml"] for one in documents.values() if one["kind"] == "ConfigMap")


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_drain_ends_within_the_grace_period(folder: str) -> None:
    documents = rendered(folder)
    grace = documents["Deployment", "carillon"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    # 10 s for the commit, 10 s for leaving the group, and slack, as in deploy/carillon.service.
    assert yaml.safe_load(config(documents))["drain_s"] + 30 <= grace
    unit = (TOP / "deploy/carillon.service").read_text()
    assert grace == int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M)[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_static_rollout_moves_no_partition(version: str) -> None:
    documents = rendered("overlays/static")
    assert ("Deployment", "carillon") not in documents
    workers = documents["StatefulSet", "carillon"]
    validate(workers, version)
    pod = workers["spec"]["template"]["spec"]
    env = {one["name"]: one for one in pod["containers"][0].pop("env")}
    assert env["CARILLON__KAFKA__OPTIONS__GROUP_INSTANCE_ID"]["value"] == "$(POD_NAME)"
    session = int(env["CARILLON__KAFKA__OPTIONS__SESSION_TIMEOUT_MS"]["value"])
    assert session >= 1000 * (pod["terminationGracePeriodSeconds"] + 30), "a restart is over before the session"
    base = rendered("base")["Deployment", "carillon"]["spec"]
    assert pod == base["template"]["spec"], "otherwise the same pods"
    assert workers["spec"]["selector"] == base["selector"]
    assert documents["Service", workers["spec"]["serviceName"]]["spec"]["clusterIP"] == "None"


def test_the_job_makes_the_topics_of_the_configuration() -> None:
    documents = rendered("base")
    shipped = yaml.safe_load((TOP / "Config/carillon.yaml").read_text())["kafka"]["topics"]
    container = documents["Job", "carillon-topics"]["spec"]["template"]["spec"]["containers"][0]
    env = {one["name"]: one["value"] for one in container["env"]}
    assert sorted(env["TOPICS"].split()) == sorted(shipped.values())
    compose = (TOP / "deploy/compose/compose.yaml").read_text()
    assert container["image"] in compose


def test_a_worker_takes_the_configuration(tmp_path: Path) -> None:
    binary = Path(os.environ.get("CARILLON", TOP / ".build/debug/carillon"))
    if not binary.exists():
        pytest.skip("no .build/debug/carillon; CARILLON names another")
    documents = rendered("overlays/example")
    container = documents["Deployment", "carillon"]["spec"]["template"]["spec"]["containers"][0]
    env = {one["name"]: one["value"] for one in container["env"]}
    (tmp_path / "config").mkdir()
    (tmp_path / "config/carillon.yaml").write_text(config(documents))
    shutil.copy(TOP / "Config/templates.yaml", tmp_path)
    key = tmp_path / env["CARILLON__APPS__0__CREDENTIALS__KEY_FILE"]
    key.parent.mkdir()
    make = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key)]
    subprocess.run(make, check=True, capture_output=True)
    key.chmod(0o400)
    command = [str(binary), "check", "--offline", "--config", "config/carillon.yaml"]
    result = subprocess.run(command, cwd=tmp_path, env={**os.environ, **env}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
