# SPDX-License-Identifier: Apache-2.0
"""The commands and options on the pages exist in the program."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

from docs.tests.test_pages import PAGES, TOP


@functools.cache
def usage(binary: Path, command: str) -> str | None:
    """None if there is no such command."""
    done = subprocess.run([binary, command, "--help"], capture_output=True, text=True, timeout=30)
    return done.stdout if done.returncode == 0 else None


def options(text: str) -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]*", text))


def missing(text: str, given: set[str]) -> set[str]:
    """Missing required options: those without brackets in the usage, and those that the help calls required."""
    line = next(line for line in text.splitlines() if line.startswith("usage: "))
    wanted = options(re.sub(r"\[.*?\]", "", line))
    for option, instead in re.findall(r"^  (--[a-z-]+).*required unless (--[a-z-]+)", text, re.MULTILINE):
        if instead not in given:
            wanted.add(option)
    return wanted - given


def commands(text: str) -> tuple[list[str], list[str]]:
    """The text after `carillon` in code, up to the end or a pipe: in blocks (continued lines as one), and in sentences."""
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return called(lines), called(spans)


def called(codes: list[str]) -> list[str]:
    found = (re.search(r"(?:^|[/(]|&& |\| )carillon ([a-z-].*)$", code) for code in codes)
    return [re.split(r"[|#>;&)]", match[1])[0] for match in found if match]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_printed_commands_exist(page: Path, binary: Path) -> None:
    wrong = []
    in_blocks, in_sentences = commands(page.read_text())
    for command, is_whole in [*((c, True) for c in in_blocks), *((c, False) for c in in_sentences)]:
        name = command.split()[0]
        if name.startswith("--") or not re.fullmatch(r"[a-z]+", name):
            continue
        text = usage(binary, name)
        if text is None:
            wrong.append(f"no such command: {command}")
            continue
        given = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", command))
        wrong += [f"{option} of: {command}" for option in sorted(given - options(text))]
        # A sentence may name a part of a command; a block must be complete.
        if is_whole and not given & {"--help", "--version"}:
            wrong += [f"without {option}: {command}" for option in sorted(missing(text, given))]
    assert wrong == []


def test_a_missing_option_is_seen(binary: Path) -> None:
    text = usage(binary, "simulate")
    assert text
    assert missing(text, {"--ledger"}) == {"--listen"}
    assert missing(text, {"--listen"}) == {"--ledger"}
    assert missing(text, {"--listen", "--counts-only"}) == set()
