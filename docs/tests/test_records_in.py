# SPDX-License-Identifier: Apache-2.0
"""The schemas of input records and the worker refuse the same records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.tests.schemas import SCHEMAS, complaints, mutants
from docs.tests.small_world import EVENTS, USER_STATE, Place, SmallWorld

TOP = Path(__file__).parents[2]
SCHEMA_OF = {EVENTS: "events.json", USER_STATE: "user-state.json"}
HEAD = {"v": 1, "app": "im", "event_id": "e", "sent_ms": 1_600_000_000_000}
MESSAGE = {
    "msg_id": "m",
    "server_seq": 1,
    # Expired, so that an accepted record costs nothing.
    "expire_at_ms": 1_600_000_000_001,
    "conv": {"id": "c", "type": "p2p", "name": "n"},
    "from": {"uid": "a", "nick": "A", "device": "d", "avatar": "https://example.com/a.png"},
    "to": {"uids": ["b"], "exclude": ["x"], "devices": ["d"]},
    "mention": {"all": True, "uids": ["b"]},
    "push": {
        "content": "hello",
        "subtitle": "s",
        "image": "https://example.com/i.png",
        "payload": {"k": 1},
        "template": {"id": "t", "args": {"name": "x"}},
        "task_id": "t",
        "mutable": True,
        "force": {"mode": "list", "uids": ["b"]},
    },
}
TOKEN = {
    "device": "d",
    "token": "abcd",
    "env": "production",
    "topic": "com.example.im",
    "type": "alert",
    "bind_ver": 1,
    "alerts": False,
}
ACTIVITY = {
    "activity_id": "x",
    "event": "start",
    "state": {"a": 1},
    "attributes_type": "T",
    "attributes": {"a": 1},
    "alert": {"title": "t"},
}
# One good record of each kind, the base of the mutants.
GOOD: dict[str, dict[str, Any]] = {
    "message": MESSAGE,
    "revoke": {**MESSAGE, "revoke": {"target_msg_id": "t", "badge": "keep"}},
    "live_activity": {"to": {"uids": ["b"]}, "la": ACTIVITY},
    "bind": {"uid": "u", "token": TOKEN},
    "unbind": {"uid": "u", "token": {"device": "d", "token": "abcd", "bind_ver": 1}},
    "settings": {
        "uid": "u",
        "dnd": {"on": True, "start": "22:00", "end": "08:00", "tz": "UTC", "level": 1},
        "levels": {"p2p": 5, "group": 1, "ultra": -1, "system": 0, "custom": 2},
        "snooze_until_ms": 1_600_000_000_000,
    },
    "mute": {"uid": "u", "conv_id": "c", "level": 5, "until_ms": 1_600_000_000_000},
    "read": {"uid": "u", "conv_id": "c", "up_to_seq": 5},
    "badge_report": {"uid": "u", "device": "d", "value": 3, "client_ms": 1_600_000_000_000},
    "ack": {"uid": "u", "device": "d", "conn_epoch": 5, "msg_ids": ["m"]},
    "open_report": {"uid": "u", "device": "d", "pid": "p", "opened_ms": 1_600_000_000_000, "msg_id": "m"},
    "arrived_report": {"uid": "u", "device": "d", "pid": "p", "arrived_ms": 1_600_000_000_000, "msg_id": "m"},
    "forget": {"uid": "u"},
}
# Rules that a schema cannot express: they depend on another field, the configuration or the whole record.
# The schema must refuse everything else that the worker refuses.
BEYOND_SCHEMAS = re.compile(
    "start and end must differ|not a time zone of|DND needs a window|a start needs an alert|unknown app|"
    "longer than 2048 characters|record longer than|more than 32|at most 7 days after sent_ms"
)


def topic_of(kind: str) -> str:
    return EVENTS if kind in ("message", "revoke", "live_activity") else USER_STATE


def made() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for kind, fields in GOOD.items():
        base = {**HEAD, "kind": kind, **fields}
        topic = topic_of(kind)
        yield topic, f"{kind} as it is", base
        yield topic, f"{kind} with a field of no meaning", {**base, "x": [1]}
        for mutant in mutants(SCHEMAS[SCHEMA_OF[topic]]["$defs"][kind], base):
            yield topic, mutant.what, mutant.value
    group = {**HEAD, "kind": "message", **MESSAGE, "conv": {"id": "g", "type": "group"}}
    yield EVENTS, "a group without recipients", {**group, "to": None}
    for tokens in (["ab", "CD"], ["ab"] * 1000, ["ab"] * 1001, [], ["abc"], ["x"], [""], ["ab" * 257], "ab", [7], None):
        for uids in (["b"], None):
            to = {"uids": uids, "tokens": tokens, "exclude": ["x"]}
            yield EVENTS, f"tokens {str(tokens)[:20]}, uids {uids}", {**HEAD, "kind": "message", **MESSAGE, "to": to}
    for event in ("update", "end"):
        record = {**HEAD, "kind": "live_activity", "la": {**ACTIVITY, "event": event}}
        yield EVENTS, f"an {event} for all who bound it", record
    for event in ("start", "update", "end"):
        for name in ("dHN0+/8=", "", None, "a b", 7):
            for to in (None, {"uids": ["b"]}):
                record = {**HEAD, "kind": "live_activity", "to": to, "la": {**ACTIVITY, "event": event, "channel": name}}
                yield EVENTS, f"{event} to the channel {name} and to {to}", record
    channel = {**ACTIVITY, "input_push_channel": "dHN0+/8="}
    yield EVENTS, "a start by a channel", {**HEAD, "kind": "live_activity", "to": {"uids": []}, "la": channel}
    both = {**channel, "input_push_token": True}
    yield EVENTS, "a start both ways", {**HEAD, "kind": "live_activity", "to": {"uids": []}, "la": both}
    for fields in ({"input_push_token": True, "input_push_channel": "a b"}, {"input_push_token": 7, "input_push_channel": [1]}):
        for event in ("start", "update"):
            la = {**ACTIVITY, **fields, "event": event}
            yield EVENTS, f"{fields} in a {event}", {**HEAD, "kind": "live_activity", "to": {"uids": []}, "la": la}
    nameless = {**channel, "input_push_channel": ""}
    yield EVENTS, "optional ones are empty", {**HEAD, "kind": "live_activity", "msg_id": "", "to": {"uids": []}, "la": nameless}
    yield USER_STATE, "the other topic's kind", group


def kept() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Records of the demo, of the fuzzing corpus and of the reader's own tests."""
    for name, topic in (("events", EVENTS), ("state", USER_STATE)):
        for line in (TOP / f"Config/demo/{name}.ndjson").read_text().splitlines():
            yield topic, f"demo {name}", json.loads(line)
    for path in sorted((TOP / "Tests/Corpus/records").iterdir()):
        raw = path.read_bytes()
        topic = USER_STATE if raw[:1] and raw[0] & 1 else EVENTS
        value = parsed(raw[1:])
        if value is not None:
            yield topic, f"corpus {path.name}", value
    for line in swift_rows():
        value = parsed(line.encode())
        if value is not None:
            yield topic_of(value.get("kind", "message")), "a row of the reader's tests", value


def parsed(raw: bytes) -> dict[str, Any] | None:
    """The record as JSON of whole characters; None for others, which schemas cannot judge."""
    try:
        value = json.loads(raw, parse_constant=lambda _: 1 / 0)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, ZeroDivisionError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def swift_rows() -> list[str]:
    """The records that `message(#"…"#)`, `state("…", #"…"#)` and `bind(#"…"#)` make in the reader's tests."""
    text = "".join(
        (TOP / f"Tests/WorkerTests/Events/{name}.swift").read_text() for name in ("BadRecordTests", "EventReaderTests")
    )
    head = '{"v":1,"app":"im","event_id":"e","sent_ms":1700000000000,'
    message = head + '"kind":"message","msg_id":"m","conv":{"id":"c","type":"p2p"},"from":{"uid":"a"},"to":{"uids":["b"]}'
    token = '"device":"d","token":"ab","env":"sandbox","topic":"t","type":"alert","bind_ver":1'
    rows = [f"{message},{extra}}}" for extra in re.findall(r'\bmessage\(\s*#"([^\n]*?)"#', text)]
    for kind, fields in re.findall(r'\bstate\(\s*"(\w+)", #"([^\n]*?)"#', text):
        rows.append(f'{head}"kind":"{kind}","uid":"u",{fields}}}')
    rows += [
        f'{head}"kind":"bind","uid":"u","token":{{{token},{extra}}}}}'
        for extra in re.findall(r'\bbind\(\s*#"([^\n]*?)"#', text)
    ]
    return [row for row in rows if r"\#(" not in row]


def test_rows_of_the_reader_tests_are_found() -> None:
    assert len([row for row in swift_rows() if parsed(row.encode())]) > 50


def test_the_worker_and_the_schemas_refuse_the_same_records(world: SmallWorld) -> None:
    written: dict[Place, tuple[str, dict[str, Any]]] = {}
    for topic, what, value in [*made(), *kept()]:
        place = world.write(topic, "k", json.dumps(value, ensure_ascii=False).encode())
        written[place] = (what, value)
    world.settle(EVENTS, USER_STATE)
    refused: dict[Place, str] = {}
    for letter in world.read("push.dead-letter"):
        of = letter.headers
        place = Place(of["carillon-topic"], int(of["carillon-partition"]), int(of["carillon-offset"]))
        refused[place] = of["carillon-error"]
    wrong: list[str] = []
    agreed = 0
    for place, (what, value) in written.items():
        found = complaints(SCHEMA_OF[place.topic], value)
        why = refused.get(place)
        if why is None and found:
            wrong.append(f"{what}: taken by the worker, refused by the schema: {found[0]}")
        elif why is not None and not found and not BEYOND_SCHEMAS.search(why):
            wrong.append(f"{what}: taken by the schema, refused by the worker: {why}")
        agreed += why is not None and bool(found)
    assert not wrong, "\n".join(wrong)
    assert agreed > 400, f"only {agreed} of {len(written)} records were refused by both"
