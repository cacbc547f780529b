# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md tells the path of an ordinary push as a trace of a debug build shows it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from deploy.push_path import BINARY, PAGE, PushPath, differences, parts, push_path

TABLE = "## The path of a message to one user"
# The steps of the table that a push without a wait and without an unknown lease does not take.
NOT_USUAL = {"Sender+Check"}


@pytest.fixture(scope="module")
def path() -> Iterator[PushPath]:
    assert BINARY.exists(), f"{BINARY} is not built: swift build --product push-cost"
    yield push_path()


def test_the_page_has_the_files_and_the_counts(path: PushPath) -> None:
    _, told, _ = parts(PAGE.read_text())
    assert differences(told, path) == [], "run: deploy/push_path.py --write"


def test_a_push_passes_the_files_of_the_table(path: PushPath) -> None:
    _, _, rest = PAGE.read_text().partition(TABLE)
    rows = re.findall(r"^\| \d+ \|.*\| (.*) \|$", rest, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(?:\w+/)?([\w+]+)\.swift`", row)}
    passed = {file.rpartition("/")[2].removesuffix(".swift") for file in path.files}
    assert len(rows) == 17 and named - passed <= NOT_USUAL


def test_a_difference_is_told() -> None:
    path = PushPath(Counter({"State/Claim.swift": 20, "Trace/TraceBytes.swift": 5}), calls=100, changes=50)
    assert differences(path.text(), path) == []
    wrong = path.text().replace("`Claim`", "`Clam`").replace("25 functions", "27 functions").replace("100 calls", "97 calls")
    assert differences(wrong, path) == [
        "a push does not pass State/Clam.swift",
        "a push passes State/Claim.swift",
        "25 functions, not 27",
    ]
