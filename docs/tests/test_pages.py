# SPDX-License-Identifier: Apache-2.0
"""The pages of docs: the contract has every field, and every link has a target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.tests.schemas import SCHEMAS

TOP = Path(__file__).parents[2]
PAGES = sorted(
    [
        *(TOP / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "RELEASING", "SECURITY")),
        *(page for folder in ("docs", "Examples", "deploy", "Config") for page in (TOP / folder).glob("**/*.md")),
    ]
)


def fields(schema: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for member in schema.values():
            yield from fields(member)
    elif isinstance(schema, list):
        for item in schema:
            yield from fields(item)


def test_the_contract_has_every_field() -> None:
    text = "".join(path.read_text() for path in (TOP / "docs/contract").glob("*.md"))
    words = set(re.findall(r"[\w-]+", text))
    wanted = {name for schema in SCHEMAS.values() for name in fields(schema)}
    assert len(wanted) > 100
    assert wanted - words == set()


def lone_rows(text: str) -> list[str]:
    """Rows outside of a table, and rows with another width than their table's head."""
    wrong = []
    width = 0
    lines = re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not line.startswith("|"):
            width = 0
            continue
        # For GitHub, a bar within code separates cells; a bar after a backslash does not.
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        if width == 0:
            if not re.fullmatch(r"\|(?: *:?-+:? *\|)+", following):
                wrong.append(f"no head above: {line}")
            width = cells
        elif cells != width:
            wrong.append(f"{cells} cells and not {width}: {line}")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_tables_are_whole(page: Path) -> None:
    assert lone_rows(page.read_text()) == []


def test_a_row_behind_a_blank_line_is_seen() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert lone_rows(table) == []
    assert lone_rows(table + "\n| 3 | 4 |\n") == ["no head above: | 3 | 4 |"]
    assert lone_rows(table + "| 3 |\n") == ["1 cells and not 2: | 3 |"]


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


def test_the_threat_model_names_tests_that_exist() -> None:
    text = (TOP / "docs/threat-model.md").read_text()
    named = {name.rsplit("/", 1)[-1] for name in re.findall(r"`([A-Za-z/]*(?:Tests|Fuzz))`", text)}
    assert len(named) > 20
    files = {path.stem for path in (TOP / "Tests").rglob("*.swift")}
    assert named - files == set()


def test_the_runbooks_quote_texts_of_the_program() -> None:
    """Log messages, `/readyz` lines and panel titles in quotes exist in the sources."""
    prose = re.sub(r"\s+", " ", re.sub(r"```.*?```|`[^`]*`", "", (TOP / "docs/runbooks.md").read_text(), flags=re.DOTALL))
    quoted = {text for text in re.findall(r'"([^"]+)"', prose) if len(text.split()) > 2}
    assert len(quoted) > 5
    sources = [*(TOP / "Sources").rglob("*.swift"), *(TOP / "deploy/monitoring").glob("*.py")]
    code = re.sub(r"\s+", " ", "".join(path.read_text() for path in sources))
    assert {text for text in quoted if text.rstrip(".,") not in code} == set()
