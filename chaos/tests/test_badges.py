# SPDX-License-Identifier: Apache-2.0
"""The badge laws, by rows."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks import badges
from chaos.evidence import EVENTS, USER_STATE
from chaos.facts import Facts
from chaos.tests.good_run import BASE, Builder


def number(events: list[dict[str, Any]], states: list[dict[str, Any]], online: bool = False) -> str:
    """The lawful numbers of `ann` after these, in seconds of `at`."""
    world = Builder()
    world.evidence.run.badges = {"ann": 0}
    for index, fields in enumerate(events):
        fields = dict(fields)
        at = fields.pop("at", index + 1) * 1000
        msg_id = f"m{index + 1}"
        world.produce(at, EVENTS, world.event(at, msg_id, "bob", ["ann"], **fields))
        world.record(at + 50, msg_id, "ann", fields.pop("verdict", "suppressed"), reason="no_token")
    for fields in states:
        at = fields.get("at", 0) * 1000
        value = {"v": 1, "app": "im", "event_id": f"s{at}", "sent_ms": BASE + at, "uid": "ann", **fields}
        world.produce(at, USER_STATE, value)
    facts = Facts(world.finish())
    return str(badges.number_of(facts, "ann", badges.messages_of_users(facts)["ann"]))


def read(at: int, up_to: int) -> dict[str, Any]:
    return {"kind": "read", "at": at, "conv_id": "p-bob-ann", "up_to_ms": BASE + up_to * 1000}


def report(at: int, value: int) -> dict[str, Any]:
    return {"kind": "badge_report", "at": at, "device": "d", "value": value, "client_ms": BASE + at * 1000}


def mute(level: int) -> dict[str, Any]:
    return {"kind": "mute", "at": 0, "conv_id": "p-bob-ann", "level": level}


def recall(target: str, badge: str) -> dict[str, Any]:
    return {"kind": "revoke", "at": 9, "revoke": {"target_msg_id": target, "badge": badge}}


FORCED = {"push": {"content": "x", "force": {"mode": "list", "uids": ["ann"]}}}
ROWS: list[tuple[list[dict[str, Any]], list[dict[str, Any]], str]] = [
    ([{}, {}], [], "2"),
    ([{"push": {"enabled": False}}, {"push": {"badge": False}}, {}], [], "1"),
    ([{}, {}, {}], [read(5, 2)], "1"),
    ([{}, {}], [read(5, 2), read(6, 2)], "0"),
    ([{}, {}, recall("m1", "decrease")], [], "1"),
    ([{}, {}, recall("m1", "keep")], [], "2"),
    ([{}, recall("m1", "decrease")], [read(20, 1)], "0"),
    ([{}, FORCED], [mute(5)], "1"),
    ([{}, {}], [mute(1)], "0"),
    ([{}, {}], [mute(-1)], "2"),
    ([{}, {"at": 8}], [report(5, 7)], "8"),
    ([{}, {"at": 8}], [report(5, 0)], "1"),
    # What the report knew of is taken off it by a later read, not by an earlier one.
    ([{}, {}], [report(5, 7), read(6, 2)], "5"),
    ([{}, {}], [report(5, 7), read(4, 2)], "7"),
    # Never below nothing.
    ([{}, {}, {"at": 8}], [report(5, 1), read(6, 2)], "1"),
    ([{"verdict": "expired"}, {}], [], "1 to 2"),
]


@pytest.mark.parametrize(("events", "states", "lawful"), ROWS)
def test_the_number_follows_the_laws(events: list[dict[str, Any]], states: list[dict[str, Any]], lawful: str) -> None:
    assert number(events, states) == lawful
