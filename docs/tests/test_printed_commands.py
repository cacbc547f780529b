"""Commands that the pages print are ones that the program knows, with options that it has."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

from docs.tests.test_pages import PAGES, TOP


@functools.cache
def options(binary: Path, command: str) -> set[str] | None:
    """Nil: there is no such command."""
    done = subprocess.run([binary, command, "--help"], capture_output=True, text=True, timeout=30)
    return set(re.findall(r"--[a-z][a-z-]*", done.stdout)) if done.returncode == 0 else None


def commands(text: str) -> list[str]:
    """What stands in code, with continued lines as one; what follows `carillon` up to the end or a pipe."""
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    found = (re.search(r"(?:^|[/(]|&& |\| )carillon ([a-z-].*)$", code) for code in lines + spans)
    return [re.split(r"[|#>;&)]", match[1])[0] for match in found if match]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_printed_commands_exist(page: Path, binary: Path) -> None:
    wrong = []
    for command in commands(page.read_text()):
        name = command.split()[0]
        if name.startswith("--") or not re.fullmatch(r"[a-z]+", name):
            continue
        known = options(binary, name)
        if known is None:
            wrong.append(f"no such command: {command}")
            continue
        unknown = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", command)) - known
        wrong += [f"{option} of: {command}" for option in sorted(unknown)]
    assert wrong == []
