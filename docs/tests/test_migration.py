# SPDX-License-Identifier: Apache-2.0
"""The worked examples of docs/migration: the records of a page give the payloads that it shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.servers import now_ms
from docs.tests.small_world import EVENTS, USER_STATE, SmallWorld

TOP = Path(__file__).parents[2]
PAGES = sorted((TOP / "docs/migration").glob("*.md"))
# The pages' times are around this moment; they move together, so that it becomes the present.
EPOCH_MS = 1_763_600_000_000
SECONDS = {"timestamp", "stale-date", "dismissal-date"}
EVENT_KINDS = {"message", "revoke", "live_activity"}
OUTPUTS = {"Result": "push.results", "State result": "push.state-results"}
LABELS = {"App", "Templates", "Redis", "Request", "Record", "Payload", "Headers", *OUTPUTS}


@dataclass(frozen=True)
class Block:
    label: str
    text: str


@dataclass
class Example:
    vendor: str
    blocks: list[Block] = field(default_factory=list)

    def text_of(self, label: str) -> str | None:
        return next((block.text for block in self.blocks if block.label == label), None)


def blocks(page: str) -> Iterator[Block]:
    found = re.findall(
        r"^\*\*([A-Z][a-z ]+)\*\*(?:(?!\n\*\*|```).|\n(?!\*\*))*?```[a-z]+\n(.*?)```", page, re.DOTALL | re.MULTILINE
    )
    return (Block(label, text) for label, text in found)


def examples() -> Iterator[Example]:
    for path in PAGES:
        page = path.read_text()
        example = Example(page.split("\n")[0].removeprefix("# From "), list(blocks(page)))
        if example.blocks:
            yield example


EXAMPLES = list(examples())


def test_each_vendor_has_an_example() -> None:
    assert {example.vendor for example in EXAMPLES} == {"WPS", "NetEase NIM", "RongCloud", "Getui", "mPaaS"}
    for example in EXAMPLES:
        labels = {block.label for block in example.blocks}
        assert labels <= LABELS and {"App", "Request", "Record", "Payload"} <= labels


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_each_page_says_how_to_go_back_and_labels_each_block(page: Path) -> None:
    text = page.read_text()
    assert "\n## To go back\n" in text
    assert len(list(blocks(text))) == text.count("\n```") // 2


@pytest.fixture(scope="module")
def replaced(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    """A worker with one app per vendor, configured as the page says."""
    folder = tmp_path_factory.mktemp("vendors")
    apps = []
    for example in EXAMPLES:
        app = yaml.safe_load(example.text_of("App") or "")
        app["templates"] = str(TOP / "Config/templates.yaml")
        templates = example.text_of("Templates")
        if templates is not None:
            place = folder / f"{app['id']}-templates.yaml"
            place.write_text(templates)
            app["templates"] = str(place)
        apps.append(app)
    world = SmallWorld(binary, folder)
    try:
        world.open(apps)
        yield world
    finally:
        world.close()


def moved(value: Any, by_ms: int) -> Any:  # noqa: ANN401
    """The page's times as times around the present."""
    if isinstance(value, list):
        return [moved(item, by_ms) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, member in value.items():
        if key.endswith("_ms") and isinstance(member, int):
            made[key] = member + by_ms
        elif key in SECONDS and isinstance(member, int):
            made[key] = member + by_ms // 1000
        else:
            made[key] = moved(member, by_ms)
    return made


class Play:
    """Plays the blocks of one example in their order."""

    def __init__(self, world: SmallWorld) -> None:
        self.world = world
        # Whole seconds, so that times in seconds and in milliseconds move alike.
        self.by_ms = (now_ms() - 60_000 - EPOCH_MS) // 1000 * 1000
        self.pushes: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}

    def play(self, block: Block) -> None:
        if block.label == "Redis":
            self._redis(block.text)
        elif block.label == "Record":
            self._record(json.loads(block.text))
        elif block.label == "Payload":
            assert self.pushes, "no push was sent"
            self.last = self.pushes.pop(0)
            payload = dict(self.last["payload"])
            if "pid" in payload:
                assert payload["pid"] == self.last["headers"].get("apns-id", self.last["apns_id"])
                payload["pid"] = "…"
            assert payload == moved(json.loads(block.text), self.by_ms)
        elif block.label == "Headers":
            wanted = json.loads(block.text)
            assert {name: self.last["headers"].get(name) for name in wanted} == wanted
        elif block.label in OUTPUTS:
            wanted = json.loads(block.text)
            found = [record.json() for record in self.world.read(OUTPUTS[block.label])]
            assert any(wanted.items() <= record.items() for record in found), found
        elif block.label == "Request":
            assert json.loads(block.text)

    def _redis(self, text: str) -> None:
        for line in text.splitlines():
            command, key, *pairs = line.split()
            assert command == "HSET"
            self.world.redis.client().hset(key, mapping=dict(zip(pairs[::2], pairs[1::2], strict=True)))

    def _record(self, record: dict[str, Any]) -> None:
        assert not self.pushes, f"the page does not show {self.pushes}"
        is_event = record["kind"] in EVENT_KINDS
        key = record["conv"]["id"] if "conv" in record else record.get("uid", "k")
        before = len(self.world.ledger())
        place = self.world.write(EVENTS if is_event else USER_STATE, key, moved(record, self.by_ms))
        self.world.settle(EVENTS, USER_STATE, seconds=30)
        self.pushes = self.world.ledger()[before:]
        letters = [letter.headers for letter in self.world.read("push.dead-letter")]
        assert [
            letter
            for letter in letters
            if letter["carillon-topic"] == place.topic
            and letter["carillon-partition"] == str(place.partition)
            and letter["carillon-offset"] == str(place.offset)
        ] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.vendor)
def test_the_records_give_the_payloads(replaced: SmallWorld, example: Example) -> None:
    play = Play(replaced)
    for block in example.blocks:
        play.play(block)
    assert not play.pushes
