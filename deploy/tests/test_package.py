# SPDX-License-Identifier: Apache-2.0
"""One version everywhere, and a bill of materials that fits its standard."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

TOP = Path(__file__).parents[2]
STATIC = {"name": "carillon:linked", "value": "statically"}


def run(*command: str) -> str:
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout


def version() -> str:
    return run("deploy/version").strip()


def test_the_changelog_has_one_section_per_version_from_new_to_old() -> None:
    text = (TOP / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings[0] == "[Unreleased]"
    versions = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:]]
    assert all(versions)
    numbers = [tuple(int(part) for part in one.groups()) for one in versions]
    assert numbers == sorted(numbers, reverse=True) and len(set(numbers)) == len(numbers)
    parts = {"Before the upgrade", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        titles = re.findall(r"^### (.*)$", section, re.M)
        assert set(titles) <= parts and "Before the upgrade" not in titles[1:]
    assert version() == ".".join(str(part) for part in numbers[0])


def test_the_binary_tells_the_same_version() -> None:
    source = (TOP / "Sources/Worker/Process").glob("WorkerProcess*.swift")
    assert re.findall(r'static let version = "(.*)"', "".join(file.read_text() for file in source)) == [version()]


def test_the_example_overlay_names_the_image_of_this_version() -> None:
    plan = yaml.safe_load((TOP / "deploy/kubernetes/overlays/example/kustomization.yaml").read_text())
    assert [image["newTag"] for image in plan["images"]] == [version()]


def test_the_image_has_the_labels_of_its_kind() -> None:
    labels = set(re.findall(r"org\.opencontainers\.image\.(\S+?)=", (TOP / "deploy/Dockerfile").read_text()))
    assert labels == {"title", "description", "licenses", "version", "revision", "base.name"}


def test_the_bill_of_materials_is_cyclonedx_and_names_what_is_linked() -> None:
    binary = Path(os.environ.get("CARILLON", TOP / ".build/debug/carillon"))
    if not binary.exists():
        pytest.skip("no .build/debug/carillon; CARILLON names another")
    text = run("deploy/make-sbom", str(binary), version())
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(text) is None
    bill = json.loads(text)
    names = {one["name"] for one in bill["components"]}
    assert {
        "librdkafka1",
        "libnghttp2-14",
        "libssl3",
        "libhiredis0.14",
        "libsimdjson14",
        "libyaml-0-2",
        "libevent-2.1-7",
    } <= names
    purls = [one.get("purl", "") for one in bill["components"] if one["name"] == "libssl3"]
    installed = run("dpkg-query", "-W", "-f=${Version}", "libssl3")
    assert purls[0].startswith(f"pkg:deb/debian/libssl3@{installed.replace('+', '%2B')}?")
    assert set(bill["dependencies"][0]["dependsOn"]) == {one["bom-ref"] for one in bill["components"]}


def test_the_bill_of_materials_names_the_libraries_that_are_linked_in(tmp_path: Path) -> None:
    built = Path(os.environ.get("CARILLON", TOP / ".build/debug/carillon"))
    if not built.exists():
        pytest.skip("no .build/debug/carillon; CARILLON names another")
    binary = tmp_path / "carillon"
    binary.symlink_to(built)
    # The facts at the time of the build: this machine's packages may be newer, or not installed.
    facts = [("librdkafka-dev", "1.0-1", "arm64", "librdkafka", "Us"), ("libnghttp2-dev", "2.0-1", "arm64", "nghttp2", "Us")]
    (tmp_path / "carillon.packages").write_text("".join("\t".join(one) + "\n" for one in facts))
    components = json.loads(run("deploy/make-sbom", str(binary), version()))["components"]
    linked = {one["name"]: one["version"] for one in components if STATIC in one.get("properties", [])}
    assert linked == {"librdkafka-dev": "1.0-1", "libnghttp2-dev": "2.0-1"}


def test_the_version_of_swift_is_found_in_debug_information_beside_the_binary(tmp_path: Path) -> None:
    # A program without Swift's shared library and without debug information.
    binary = tmp_path / "carillon"
    binary.write_bytes(Path("/bin/true").read_bytes())
    (tmp_path / "carillon.debug").write_bytes(b"\0Swift version 6.3.1 (swift-6.3.1-RELEASE)\0")
    components = json.loads(run("deploy/make-sbom", str(binary), version()))["components"]
    assert [one["version"] for one in components if one["name"] == "swift-stdlib"] == ["6.3.1"]


def test_the_build_of_the_image_names_no_architecture() -> None:
    recipe = TOP / "deploy/Dockerfile"
    scripts = [TOP / name for name in set(re.findall(r"deploy/[\w-]+", recipe.read_text())) - {"deploy/Dockerfile"}]
    assert TOP / "deploy/build-trained" in scripts and TOP / "deploy/link-archives" in scripts
    for file in [recipe, *scripts]:
        assert not re.search(r"amd64|x86|arm64|aarch64|linux-gnu", file.read_text()), file


def test_a_bill_of_another_form_is_refused() -> None:
    assert (
        JsonStrictValidator(SchemaVersion.V1_5).validate_str('{"bomFormat": "CycloneDX", "specVersion": "1.5", "x": 1}')
        is not None
    )


def test_the_workflow_runs_the_gate_where_the_image_is_built() -> None:
    workflow = yaml.safe_load((TOP / ".github/workflows/gate.yml").read_text())
    job = workflow["jobs"]["gate"]
    assert f"FROM {job['container']['image']} AS build" in (TOP / "deploy/Dockerfile").read_text()
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == ".ci/run"
    assert os.access(TOP / ".ci/run", os.X_OK)
    # Another's pull request must not write anything.
    assert workflow["permissions"] == {"contents": "read"}
