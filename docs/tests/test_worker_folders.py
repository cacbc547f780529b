# SPDX-License-Identifier: Apache-2.0
"""A folder of Sources/Worker names types of those folders alone that docs/decisions/worker-folders.md allows."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parents[2]
WORKER = TOP / "Sources/Worker"
PAGE = TOP / "docs/decisions/worker-folders.md"
KINDS = r"(?:struct|class|enum|protocol|actor|typealias) ([A-Z]\w*)"
# For all folders.
DECLARED = re.compile(r"^(?!.*\b(?:private|fileprivate)\b)(?:\w+ )*?" + KINDS, re.MULTILINE)
# Also for its own folder alone.
NESTED = re.compile(r"\b" + KINDS)
# What stands after a point belongs to the type before it.
NAMED = re.compile(r"(?<![\w.])[A-Z]\w*")
TEXTS = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|//.*')


def code(text: str) -> str:
    """Without comments and texts."""
    return TEXTS.sub('""', text)


def uses(files: dict[str, list[str]]) -> dict[str, dict[str, set[str]]]:
    """By folder: the folders whose types it names, with the types."""
    texts = {folder: [code(text) for text in of] for folder, of in files.items()}
    owners = {name: folder for folder, of in texts.items() for text in of for name in DECLARED.findall(text)}
    found: dict[str, dict[str, set[str]]] = {folder: {} for folder in files}
    for folder, of in texts.items():
        own = {name for text in of for name in NESTED.findall(text)}
        for name in {name for text in of for name in NAMED.findall(text)} - own:
            owner = owners.get(name, folder)
            if owner != folder:
                found[folder].setdefault(owner, set()).add(name)
    return found


def worker() -> dict[str, list[str]]:
    return {
        folder.name: [file.read_text() for file in sorted(folder.rglob("*.swift"))]
        for folder in sorted(WORKER.iterdir())
        if folder.is_dir()
    }


def allowed() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    return {folder: set(re.findall(r"`(\w+)`", others)) for folder, others in rows}


def test_a_folder_names_what_the_page_allows() -> None:
    found = uses(worker())
    assert set(allowed()) == set(found)
    wrong = {
        f"{folder} → {other}": sorted(names)
        for folder, others in found.items()
        for other, names in others.items()
        if other not in allowed()[folder]
    }
    assert wrong == {}


def test_the_page_allows_nothing_that_is_not_used() -> None:
    found = uses(worker())
    assert {folder: others - set(found[folder]) for folder, others in allowed().items() if others - set(found[folder])} == {}


def test_a_name_is_seen_and_a_nested_one_or_a_word_is_not() -> None:
    files = {
        "A": ["struct Key {}\nprivate struct Own {}\npublic final class Desk {}"],
        "B": ['let key = Key("Desk") // Desk\nlet nested = Other.Desk()\nlet own = Own()'],
    }
    assert uses(files) == {"A": {}, "B": {"A": {"Key"}}}
