# SPDX-License-Identifier: Apache-2.0
"""docs/asyncapi.yaml is AsyncAPI 3; its references, topics and kinds are those of schemas and configuration."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from docs.tests.schemas import SCHEMAS

with warnings.catch_warnings():
    # The package warns about its own field names.
    warnings.simplefilter("ignore")
    from asyncapi3.models import AsyncAPI3

DOCS = Path(__file__).parents[1]
DOCUMENT: dict[str, Any] = yaml.safe_load((DOCS / "asyncapi.yaml").read_text())
# Internal topics: their format is not part of the contract.
OWN_TOPICS = {"carillon.chunks", "carillon.parked"}


def references(value: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def resolved(reference: str, folder: Path, document: Any) -> Any:  # noqa: ANN401
    file, _, pointer = reference.partition("#")
    found = json.loads((folder / file).read_text()) if file else document
    for step in pointer.split("/")[1:]:
        found = found[step]
    return found


def test_it_is_asyncapi_3() -> None:
    made = AsyncAPI3.model_validate(DOCUMENT)
    assert made.channels and set(made.channels.root) == set(DOCUMENT["channels"])
    with pytest.raises(ValueError):
        AsyncAPI3.model_validate({**DOCUMENT, "chanels": {}})


def test_all_references_exist() -> None:
    found = set(references(DOCUMENT))
    assert len(found) > 20
    for reference in found:
        assert resolved(reference, DOCS, DOCUMENT), reference
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] in ("send", "receive")


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_json_schema_and_refers_to_what_exists(name: str) -> None:
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$id"].endswith("/" + name)
    for reference in references(schema):
        assert resolved(reference, DOCS / "schemas", schema), reference


def test_its_topics_are_those_of_the_configuration() -> None:
    configured = yaml.safe_load((DOCS.parent / "Config/carillon.yaml").read_text())["kafka"]["topics"]
    addresses = {channel["address"] for channel in DOCUMENT["channels"].values()}
    assert addresses == set(configured.values()) - OWN_TOPICS


def test_each_kind_of_the_schemas_is_a_message() -> None:
    for channel, name in (("events", "events.json"), ("userState", "user-state.json")):
        assert set(DOCUMENT["channels"][channel]["messages"]) == set(SCHEMAS[name]["$defs"])
        for kind in SCHEMAS[name]["$defs"]:
            message = DOCUMENT["components"]["messages"][kind]
            assert message["payload"]["schema"]["$ref"] == f"./schemas/{name}#/$defs/{kind}"
