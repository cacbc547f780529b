# SPDX-License-Identifier: Apache-2.0
"""The check of plain words finds each habit where a reader meets it, and passes plain sentences."""

from __future__ import annotations

import pytest

from deploy import plain_words as words

HITS = [
    ("Sources/A/B.swift", "/// The worker is told of a new token.", 1),
    ("Sources/A/B.swift", "let a = 1\n// What waits for a stream is kept here.", 2),
    ("Sources/A/B.swift", 'log.info("the worker stands idle at present")', 1),
    ("Sources/A/B.swift", "    /// Of all users that the event names.", 1),
    ("Sources/A/B.swift", 'let a = """\n    The worker is told of a token.\n    """\n// It reads one record here.', 2),
    ("docs/a.md", "# Title\n\nA user whose device is asleep.\n", 3),
    ("docs/a.md", "| key | the worker is made anew here |\n", 1),
]
PLAIN = [
    ("Sources/A/B.swift", "/// Pushes that wait for a stream, in the order of arrival."),
    ("Sources/A/B.swift", 'say("\\(told.count) of \\(others(of: he)) records were read today")'),
    ("docs/a.md", "Text.\n\n```\nwhat was told of him\n```\n"),
    ("Tests/A/B.swift", "// What waits for a stream is told here."),
]


@pytest.mark.parametrize(("file", "source", "line"), HITS)
def test_a_habit_is_found_with_its_line(file: str, source: str, line: int) -> None:
    assert [s.line for s in words.sentences(file, source) if s.habits] == [line]


@pytest.mark.parametrize(("file", "source"), PLAIN)
def test_a_plain_sentence_passes(file: str, source: str) -> None:
    assert [s.text for s in words.sentences(file, source) if s.habits] == []


def test_a_part_fails_from_its_share_on(capsys: pytest.CaptureFixture[str]) -> None:
    hit = words.Sentence("docs/a.md", 1, "The worker was told so today.")
    plain = words.Sentence("docs/a.md", 2, "The worker reads one record here.")
    assert words.report([hit, hit, *[plain] * 98], shows_all=False) == 1
    assert "docs/a.md:1:" in capsys.readouterr().out
    assert words.report([hit, hit, *[plain] * 99], shows_all=False) == 0
