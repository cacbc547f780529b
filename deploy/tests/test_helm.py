# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, rendered by Helm: the same objects as the kustomizations, with every option."""

from __future__ import annotations

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

from deploy.kubernetes import chart_values
from deploy.tests.test_kubernetes import TOOLS, TOP, VERSIONS, rendered, validate

CHART = TOP / "deploy/helm"
Documents = dict[tuple[str, str], dict[str, Any]]
# What Helm adds to tell releases apart.
HELMS = {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart", "checksum/config"}

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="deploy/kubernetes/tools.py has helm for x86-64 only")


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOLS / "helm", *arguments], cwd=CHART, capture_output=True, text=True)


def charted(*arguments: str, release: str = "carillon") -> Documents:
    result = helm("template", release, ".", *arguments)
    assert result.returncode == 0, result.stderr
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(result.stdout)}


def with_values(tmp_path: Path, values: dict[str, Any]) -> list[str]:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    return ["--values", str(tmp_path / "values.yaml")]


def plain(documents: Documents) -> Documents:
    """Without names and labels that differ by the tool, and with the configuration as a tree."""
    text = json.dumps(list(documents.values()))
    text = re.sub(r'"name": "(carillon|carillon-topics)-[0-9a-z]{8,10}"', r'"name": "\1"', text)
    made: Documents = {}
    for document in json.loads(text, object_hook=_without_helms):
        if document["kind"] == "ConfigMap":
            document["data"] = yaml.safe_load(document["data"]["carillon.yaml"])
        document["metadata"].pop("namespace", None)
        made[document["kind"], document["metadata"]["name"]] = document
    return made


def _without_helms(tree: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in tree.items() if key not in HELMS}
    if kept.get("annotations") == {}:
        del kept["annotations"]
    return kept


def kustomized(folder: str) -> Documents:
    return plain(rendered(folder))


def workers(documents: Documents) -> dict[str, Any]:
    kind = "StatefulSet" if ("StatefulSet", "carillon") in documents else "Deployment"
    return documents[kind, "carillon"]["spec"]["template"]["spec"]["containers"][0]


def env(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container.get("env", [])}


def test_the_defaults_are_the_base() -> None:
    chart, base = plain(charted()), kustomized("base")
    # The base leaves the image's place and tag to its overlays.
    assert workers(chart)["image"] == f"carillon:{version()}"
    workers(chart)["image"] = workers(base)["image"]
    assert chart == base


def test_a_static_rollout_is_that_of_the_overlay() -> None:
    chart, overlay = plain(charted("--set", "static=true")), kustomized("overlays/static")
    workers(chart)["image"] = workers(overlay)["image"]
    assert chart == overlay


def test_the_example_is_the_example_overlay() -> None:
    chart, overlay = plain(charted("--values", "example.yaml")), kustomized("overlays/example")
    del overlay["Namespace", "carillon"]
    # The chart has these values in the configuration, the overlay in the environment.
    set_there = env(workers(overlay))
    del workers(overlay)["env"]
    config = chart.pop(("ConfigMap", "carillon"))["data"]
    base = overlay.pop(("ConfigMap", "carillon"))["data"]
    for name, value in set_there.items():
        keys = name.removeprefix("CARILLON__").lower().split("__")
        place = base
        for key in keys[:-1]:
            place = place[int(key)] if isinstance(place, list) else place[key]
        place[keys[-1]] = value
    assert config == base
    assert chart == overlay


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("release", ["carillon", "im"])
@pytest.mark.parametrize("static", [False, True])
def test_every_document_fits_its_schema(version: str, release: str, static: bool, tmp_path: Path) -> None:
    documents = charted(*with_values(tmp_path, everything(static)), release=release)
    for document in documents.values():
        validate(document, version)
    name = "carillon" if release == "carillon" else "im-carillon"
    assert all(one == name or one.startswith(f"{name}-topics") for _, one in documents)
    if not static:
        spoiled = documents["Deployment", name]
        spoiled["spec"]["template"]["spec"]["thisIsNoField"] = 1
        with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
            validate(spoiled, version)


def everything(static: bool) -> dict[str, Any]:
    """A value for each key, each of them nowhere in the defaults."""
    return {
        "image": {"repository": "mirror-700/carillon", "tag": "tag-701"},
        "imagePullSecrets": [{"name": "pull-702"}],
        "config": {"kafka": {"topics": {"events": "events-703"}}, "http": {"listen": "[::]:7040"}, "shards": 7},
        "secret": "secret-705",
        "env": [{"name": "CARILLON__LOG__LEVEL", "value": "env-735"}],
        "replicas": 706,
        "static": static,
        "resources": {"limits": {"cpu": "707"}},
        "terminationGracePeriodSeconds": 708,
        "podAnnotations": {"example.com/a": "annotation-709"},
        "nodeSelector": {"disk": "node-710"},
        "tolerations": [{"key": "toleration-711", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [AFFINITY]}},
        "priorityClassName": "class-713",
        "topics": {"partitions": 7140, "replicas": 715, "minInsyncReplicas": 716, "image": "mirror/kafka:717"},
        "podDisruptionBudget": {"maxUnavailable": "736%"},
        "networkPolicy": {
            "from": [{"podSelector": {"matchLabels": {"from": "from-719"}}}],
            "kafkaPorts": [7200],
            "redisPorts": [7210],
            "apns": "10.72.2.0/24",
            "egress": [{"ports": [{"port": 7230, "protocol": "TCP"}]}],
        },
        "serviceMonitor": {
            "enabled": True,
            "labels": {"release": "monitor-724"},
            "interval": "725s",
            "scrapeTimeout": "726s",
            "endpoint": {"authorization": {"credentials": {"name": "scrape-727", "key": "token"}}},
        },
        "prometheusRule": {"enabled": True, "labels": {"release": "rule-728"}, "runbooks": "https://729.example.com/"},
        "keda": {
            "enabled": not static,
            "minReplicas": 730,
            "maxReplicas": 731,
            "serverAddress": "http://p:7320",
            "query": "max(lag_733)",
            "threshold": 734,
        },
    }


AFFINITY = {"weight": 1, "preference": {"matchExpressions": [{"key": "affinity-712", "operator": "Exists"}]}}


def test_every_value_arrives(tmp_path: Path) -> None:
    values = everything(static=False)
    full, static = charted(*with_values(tmp_path, values)), charted(*with_values(tmp_path, everything(static=True)))
    # Without KEDA, which `static` excludes, `replicas` is there too.
    arrived = json.dumps([list(full.values()), list(static.values())])
    default = re.sub(r"[0-9a-f]{8,}", "", json.dumps(list(charted("--values", "example.yaml").values())))
    for path in chart_values.rows():
        value: Any = values
        if path.rsplit(".")[-1] in ("fullnameOverride", "static", "enabled", "digest"):
            continue
        for key in path.split("."):
            value = value[key]
        own = re.search(r"[a-z-]*7\d\d+|10\.72[\d./]*", json.dumps(value))
        assert own and own[0] in arrived and own[0] not in default, path
    pod = full["Deployment", "carillon"]["spec"]["template"]["spec"]["containers"][0]
    assert pod["ports"][0]["containerPort"] == full["Service", "carillon"]["spec"]["ports"][0]["port"] == 7040
    job = next(one for (kind, _), one in full.items() if kind == "Job")
    assert env(job["spec"]["template"]["spec"]["containers"][0])["TOPICS"].startswith("events-703 im.user-state ")
    rules = full["PrometheusRule", "carillon"]["spec"]["groups"]
    links = {rule["annotations"]["runbook_url"] for group in rules for rule in group["rules"] if "alert" in rule}
    assert links and all(link.startswith("https://729.example.com/docs/runbooks.md#") for link in links)
    digest = f"sha256:{'0' * 64}"
    assert workers(charted("--set", f"image.digest={digest},image.tag=old"))["image"] == f"carillon@{digest}"
    assert ("Service", "other") in charted("--set", "fullnameOverride=other")


OPTIONS = {
    "podDisruptionBudget": "PodDisruptionBudget",
    "networkPolicy": "NetworkPolicy",
    "topics": "Job",
    "serviceMonitor": "ServiceMonitor",
    "prometheusRule": "PrometheusRule",
    "keda": "ScaledObject",
}


def test_each_option_can_be_left_out() -> None:
    every = ",".join(f"{option}.enabled=true" for option in OPTIONS)
    everything = {kind for kind, _ in charted("--set", every)}
    for option, kind in OPTIONS.items():
        documents = charted("--set", f"{every},{option}.enabled=false")
        assert {kind for kind, _ in documents} == everything - {kind}
        assert option != "topics" or ("NetworkPolicy", "carillon-topics") not in documents


def test_a_changed_configuration_is_rolled_out_and_a_changed_job_is_another() -> None:
    def seen(*arguments: str) -> tuple[str, set[str]]:
        documents = charted(*arguments)
        pod = documents["Deployment", "carillon"]["spec"]["template"]["metadata"]
        return pod["annotations"]["checksum/config"], {name for kind, name in documents if kind == "Job"}

    first, moved, more = seen(), seen("--set", "config.redis.url=redis://b:6379"), seen("--set", "topics.partitions=24")
    assert first[0] != moved[0] and first[1] == moved[1]
    assert first[0] == more[0] and first[1] != more[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replica=3"], "replica"),
        (["networkPolicy.enable=false"], "enable"),
        (["replicas=many"], "replicas"),
        (["config.drain_s=31"], "terminationGracePeriodSeconds: 60 is less than config.drain_s (31)"),
        (["config.http.listen=9464/x"], "config.http.listen must be address:port"),
        (["keda.enabled=true", "static=true"], "keda.enabled: not with `static`"),
        (["keda.enabled=true", "keda.maxReplicas=7"], "keda.maxReplicas: 7 workers with 2 shards each"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(arguments: list[str], message: str) -> None:
    result = helm("template", "carillon", ".", *(part for one in arguments for part in ("--set", one)))
    assert result.returncode != 0 and message in result.stderr


def test_lint_has_no_warning() -> None:
    for values in ([], ["--values", "example.yaml"]):
        result = helm("lint", ".", "--strict", *values)
        assert result.returncode == 0, result.stdout + result.stderr


def test_a_packed_chart_has_the_rules(tmp_path: Path) -> None:
    assert helm("package", ".", "--destination", str(tmp_path)).returncode == 0
    result = helm("template", "carillon", str(tmp_path / f"carillon-{version()}.tgz"), "--set", "prometheusRule.enabled=true")
    assert "alert: CarillonLatencyBurn" in result.stdout


def test_the_table_and_the_schema_are_made_from_the_values() -> None:
    for path, text in chart_values.files().items():
        assert path.read_text() == text, f"{path}: .build/deploy-venv/bin/python -m deploy.kubernetes.chart_values"


def test_the_chart_has_the_version_of_everything() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version(), version())


def test_a_worker_takes_the_configuration_of_the_example(tmp_path: Path) -> None:
    binary = Path(os.environ.get("CARILLON", TOP / ".build/debug/carillon"))
    if not binary.exists():
        pytest.skip("no .build/debug/carillon; CARILLON names another")
    text = charted("--values", "example.yaml")["ConfigMap", "carillon"]["data"]["carillon.yaml"]
    (tmp_path / "carillon.yaml").write_text(text)
    shutil.copy(TOP / "Config/templates.yaml", tmp_path)
    key = tmp_path / yaml.safe_load(text)["apps"][0]["credentials"]["key_file"]
    key.parent.mkdir()
    make = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key)]
    subprocess.run(make, check=True, capture_output=True)
    key.chmod(0o400)
    command = [str(binary), "check", "--offline", "--config", "carillon.yaml"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def version() -> str:
    return subprocess.run(TOP / "deploy/version", capture_output=True, text=True, check=True).stdout.strip()
