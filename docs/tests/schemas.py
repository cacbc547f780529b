# SPDX-License-Identifier: Apache-2.0
"""The schemas of docs/schemas as validators, and records that each break one rule."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry, Resource

FOLDER = Path(__file__).parents[1] / "schemas"
SCHEMAS: dict[str, dict[str, Any]] = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
REGISTRY = Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values())


def _max_bytes(_: Any, limit: int, value: Any, __: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if isinstance(value, str) and len(value.encode()) > limit:
        yield ValidationError(f"longer than {limit} bytes")


# For the worker's reader, 1.0 is not an integer.
_types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
_Validator = extend(Draft202012Validator, {"x-maxBytes": _max_bytes}, type_checker=_types)


def validator(name: str) -> Draft202012Validator:
    return _Validator(SCHEMAS[name], registry=REGISTRY)


def complaints(name: str, value: Any) -> list[str]:  # noqa: ANN401
    return [f"{error.json_path}: {error.message[:200]}" for error in validator(name).iter_errors(value)]


def unknown_fields(name: str, value: dict[str, Any], kind: str | None = None) -> list[str]:
    """Fields of a written record that are not in its schema (or in that of its kind). The event within a delivery is its
    producer's.
    """

    def look(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
        if isinstance(value, list) and "items" in schema:
            for item in value:
                yield from look(schema["items"], item, path + "[]")
        elif isinstance(value, dict) and "properties" in schema:
            for key, member in value.items():
                if key not in schema["properties"]:
                    yield f"{path}.{key}"
                else:
                    yield from look(schema["properties"][key], member, f"{path}.{key}")

    schema = SCHEMAS[name]
    return list(look(schema["$defs"][kind] if kind else schema, value, "$"))


@dataclass(frozen=True)
class Mutant:
    """A record that differs from a good one in one place."""

    what: str
    value: dict[str, Any]


_ABSENT = object()


def mutants(schema: dict[str, Any], base: dict[str, Any]) -> Iterator[Mutant]:
    """Each property, absent, null, of another type, at its limits and one beyond them, with an unknown word."""
    for path, leaf in _properties(schema, ()):
        for what, value in [("absent", _ABSENT), *_values(leaf)]:
            made = _with(base, path, value)
            if made is not None:
                yield Mutant(f"{base['kind']} {'.'.join(map(str, path))} {what}", made)


def _properties(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    for name, member in schema.get("properties", {}).items():
        yield (*path, name), member
        yield from _properties(member, (*path, name))


def _types_of(schema: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        return {"object"}
    if "anyOf" in schema:
        return set().union(*(_types_of(one) for one in schema["anyOf"]))
    if "type" not in schema and ("const" in schema or "enum" in schema):
        words = schema.get("enum", [schema.get("const")])
        return {"null" if word is None else "integer" if isinstance(word, int) else "string" for word in words}
    # Any type, if another rule defines it.
    kind = schema.get("type", ["string", "integer", "number", "boolean", "object", "array", "null"])
    return {kind} if isinstance(kind, str) else set(kind)


def _values(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    types = _types_of(schema)
    others = {"string": "x", "integer": 7, "number": 1.0, "boolean": True, "object": {"x": 1}, "array": ["x"]}
    yield "null", None
    for name, value in others.items():
        if name not in types:
            yield f"as {name}", value
    yield "empty", {"string": "", "array": [], "object": {}}.get(next(iter(types - {"null"}), ""), "")
    if "enum" in schema or "const" in schema:
        yield "no known word", "dance" if "string" in types else 3
        for word in schema.get("enum", []):
            yield f"is {word}", word
    if "maxLength" in schema:
        yield from _lengths(schema)
    if "pattern" in schema:
        yield "with a space", "a b"
        yield "of odd length", "abc"
        yield "an hour too many", "24:00"
        yield "a minute too many", "22:60"
    for name, step in (("minimum", -1), ("maximum", 1)):
        if name in schema:
            yield f"at its {name}", schema[name]
            yield f"beyond its {name}", schema[name] + step
    if "maxItems" in schema:
        most, item = schema["maxItems"], schema["items"]
        yield "with as many items as may be", ["a"] * most
        yield "with an item too many", ["a"] * (most + 1)
        for what, value in _values(item):
            yield f"item {what}", [value]


def _lengths(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    most = schema["maxLength"]
    yield "at its length", ("ab" * most)[:most]
    yield "over its length", "ab" * (most // 2 + 1)
    if "pattern" not in schema:
        yield "at its bytes", "汉" * (most // 3)
        yield "over its bytes", "汉" * (most // 3 + 1)


def _with(base: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any] | None:  # noqa: ANN401
    made = copy.deepcopy(base)
    place = made
    for name in path[:-1]:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            return None
    if value is _ABSENT:
        if path[-1] not in place:
            return None
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return made
