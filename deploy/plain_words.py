#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that comments, string literals and pages keep to plain technical English.

plain_words.py         fails if a module of Sources or a page has too many hits, and lists the hits there
plain_words.py --all   lists every hit, and the share of each module and page

A hit is a sentence with one of the habits below. They are a proxy for sentences that stop a reader: the share that a module
or a page may have is small, but it is not zero. docs/glossary.md has the terms to use instead.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

SHARE_MAX = 0.02
WORDS_MIN = 4  # shorter texts are names, not sentences
PAGES = re.compile(r"(README|CHANGELOG|CONTRIBUTING|RELEASING|SECURITY)\.md|(docs|deploy|chaos|Config|Examples)/.*\.md")

HABITS = {
    "'told' or 'tells of' for reporting": r"\btold\b|\btells? (?:of|it|how|what|who)\b",
    "'what …' as a noun": r"\b[Ww]hat (?:waits?|waited|comes?|came|is|was|were|has|had|goes|stands|stood|lies)\b"
    r"|\b[Ww]hat (?:cannot|can|may|must|they|he|it|this|these|never|some|others|an?|the|APNs|Redis)\b",
    "'who …' as a noun": r"(?:^|[.;,:] |\b(?:of|to|for|by) )[Ww]ho(?:ever|m)? "
    r"(?:has|is|was|waits?|waited|resumes|reads|finds|leaves|takes|comes|began|acknowledged|nobody|a |the )",
    "'whose'": r"\b[Ww]hose\b",
    "'stands' for 'is'": r"\b(?:stands?|stood)\b",
    "fragment that begins with 'Of'": r"^Of\b",
    "'anew', 'beside', 'meanwhile', 'in hand' …": r"\b(?:anew|beside|meanwhile|former|by then|in hand|in work)\b",
    "a person for a program": r"\b(?:he|him|his)\b",
}
INTERPOLATION = re.compile(r"\\\((?:[^()\"]|\([^()]*\))*\)")
RULES = {name: re.compile(rule) for name, rule in HABITS.items()}


@dataclass(frozen=True)
class Sentence:
    file: str
    line: int
    text: str

    @property
    def habits(self) -> list[str]:
        return [name for name, rule in RULES.items() if rule.search(self.text)]

    @property
    def part(self) -> str:
        """The module, or the page itself."""
        return self.file.split("/")[1] if self.file.startswith("Sources/") else self.file


def swift_sentences(file: str, source: str) -> list[Sentence]:
    """Comment lines, string literals and lines of multi-line literals."""
    found, is_text = [], False
    for number, line in enumerate(source.split("\n"), 1):
        comment = re.match(r"\s*///?\s?(.*)", line)
        if is_text:
            texts = [INTERPOLATION.sub("X", line.strip())]
        elif comment:
            texts = [comment.group(1)]
        else:
            texts = re.findall(r'"((?:[^"\\]|\\.)*)"', INTERPOLATION.sub("X", line))
        if line.count('"""') == 1 and not comment:
            is_text = not is_text
        found += [Sentence(file, number, text) for text in texts if len(text.split()) >= WORDS_MIN]
    return found


def page_sentences(file: str, source: str) -> list[Sentence]:
    """Sentences and cells of tables, without blocks of code."""
    blank = re.sub(r"```.*?```", lambda block: "\n" * block.group().count("\n"), source, flags=re.S)
    found, start = [], 0
    for end in re.finditer(r"(?<=[.;:!?])\s+|\n\n|\||\Z", blank):
        text = blank[start : end.start()]
        number = blank.count("\n", 0, start + len(text) - len(text.lstrip())) + 1
        if len(text.split()) >= WORDS_MIN:
            found.append(Sentence(file, number, " ".join(text.split())))
        start = end.end()
    return found


def sentences(file: str, source: str) -> list[Sentence]:
    if file.startswith("Sources/") and file.endswith(".swift"):
        return swift_sentences(file, source)
    return page_sentences(file, source) if PAGES.fullmatch(file) else []


def report(found: list[Sentence], shows_all: bool) -> int:
    """Prints the hits of each part over its share, or of all parts. Returns how many parts are over."""
    parts: dict[str, list[Sentence]] = defaultdict(list)
    for sentence in found:
        parts[sentence.part].append(sentence)
    over = 0
    for part, members in sorted(parts.items()):
        hits = [member for member in members if member.habits]
        is_over = len(hits) >= SHARE_MAX * len(members) and len(hits) > 1
        over += is_over
        if is_over or shows_all:
            for hit in hits:
                print(f"{hit.file}:{hit.line}: {hit.text[:160]}  [{', '.join(hit.habits)}]")
            print(f"{part}: {100 * len(hits) / len(members):.1f} % of {len(members)} sentences\n")
    return over


def main() -> int:
    if sys.argv[1:] not in ([], ["--all"]):
        sys.exit(__doc__)
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    found = [s for name in listed if name for s in sentences(name, Path(name).read_text("utf-8", "replace"))]
    over = report(found, shows_all=sys.argv[1:] == ["--all"])
    if over:
        print(f"{over} modules or pages have {100 * SHARE_MAX:.0f} % or more: rewrite these sentences", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
