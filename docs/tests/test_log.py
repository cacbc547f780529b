# SPDX-License-Identifier: Apache-2.0
"""docs/log.md has every key of the log's lines, with its type, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parents[2]
# The places of a line's keys in the source: a message, a log with values of its own, or values for several messages.
START = re.compile(r"\b\w*[lL]og\.(?:debug|info|warning|error|with)\(|KeyValuePairs<StaticString, LogValue>\s*=\s*\[")
KEY = re.compile(r'[\[,]\s*"(\w+)":\s*(?:\.(\w+)\(|(")|(\w+))')
# Log.swift writes these itself.
OWN = {"at": "string", "level": "string", "msg": "string", "cut": "bool"}


def end(text: str, start: int) -> int:
    """After the bracket that closes the one at `start`, whatever texts are between them."""
    depth, index = 0, start
    while True:
        if text[index] == '"':
            index = end_of_text(text, index)
            continue
        depth += (text[index] in "([{") - (text[index] in ")]}")
        index += 1
        if depth == 0:
            return index


def end_of_text(text: str, start: int) -> int:
    index = start + 1
    while text[index] != '"':
        if text[index : index + 2] == "\\(":
            index = end(text, index + 1)
        else:
            index += 2 if text[index] == "\\" else 1
    return index + 1


def written(text: str) -> Iterator[tuple[str, str | None]]:
    """Keys and types; a type is None where a name stands for the value."""
    for match in START.finditer(text):
        arguments = text[match.end() - 1 : end(text, match.end() - 1)]
        for key, case, quote, name in KEY.findall(arguments):
            yield key, case or ("string" if quote else {"true": "bool", "false": "bool"}.get(name))


def sources() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {key: {kind} for key, kind in OWN.items()}
    for file in (TOP / "Sources").rglob("*.swift"):
        for key, kind in written(file.read_text()):
            found.setdefault(key, set()).update({kind} - {None})
    return found


def listed() -> list[tuple[str, str]]:
    page = (TOP / "docs/log.md").read_text()
    return re.findall(r"^\| `(\w+)` \| (string|int|double|bool) \|", page, re.MULTILINE)


def test_the_page_lists_the_keys_of_the_source() -> None:
    keys = [key for key, _ in listed()]
    assert len(keys) == len(set(keys)), "a key has two rows"
    assert set(keys) == set(sources())


def test_each_key_has_one_type() -> None:
    found = sources()
    assert {key: {kind} for key, kind in listed()} == {key: kinds or {dict(listed())[key]} for key, kinds in found.items()}


def test_keys_are_found_wherever_they_are_written() -> None:
    text = """
        log.info("a \\(b, c["x"]) [\\"no\\": 1]", ["one": .int(f(a, [b])), "two": name])
        let more: KeyValuePairs<StaticString, LogValue> = ["three": "text", "four": true]
        self.log = log.with(["five": .string(id)])
        let others = ["six": .int(6)]
        """
    assert dict(written(text)) == {"one": "int", "two": None, "three": "string", "four": "bool", "five": "string"}


def test_every_pair_for_a_log_is_read() -> None:
    """A helper that takes pairs under another name would hide its keys."""
    places = [
        (file.name, match)
        for file in (TOP / "Sources").rglob("*.swift")
        for match in re.findall(r"KeyValuePairs<StaticString, LogValue>(?!\s*=)", file.read_text())
        if file.name != "Log.swift"
    ]
    assert places == []
