# SPDX-License-Identifier: Apache-2.0
"""Every record of a worker is valid by its schema, and some record has every field and word of the schemas."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest

from chaos.servers import now_ms
from docs.tests.schemas import SCHEMAS, complaints, unknown_fields
from docs.tests.small_world import BAD, DEAD, EVENTS, USER_STATE, SmallWorld, Written

OUTPUTS = {
    "im.deliveries": "deliveries.json",
    "push.results": "results.json",
    "push.feedback": "feedback.json",
    "push.sms": "sms.json",
    "push.state-results": "state-results.json",
}


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Story:
    """Writes records with ids of their own."""

    def __init__(self, world: SmallWorld) -> None:
        self.world = world
        self.count = 0

    def _head(self, kind: str) -> dict[str, Any]:
        self.count += 1
        return {"v": 1, "kind": kind, "app": "im", "event_id": f"out-{self.count}", "sent_ms": now_ms()}

    def state(self, kind: str, uid: str, **fields: Any) -> None:  # noqa: ANN401
        self.world.write(USER_STATE, uid, {**self._head(kind), "uid": uid, **fields})

    def bind(self, uid: str, token: str, version: int = 2) -> None:
        digits = (token + uid.encode().hex()).ljust(64, "0")
        token_of = {"token": digits, "env": "production", "topic": "com.example.im", "type": "alert"}
        self.state("bind", uid, token={"device": f"{uid}-phone", "bind_ver": version, **token_of})

    def message(self, uid: str, kind: str = "message", **fields: Any) -> dict[str, Any]:  # noqa: ANN401
        head = self._head(kind)
        conversation = {"conv": {"id": f"c-{uid}", "type": "p2p"}, "from": {"uid": "alice", "nick": "Alice"}}
        record = {**head, "msg_id": f"m-{self.count}", **conversation, "to": {"uids": [uid]}, **fields}
        record.setdefault("push", {"content": "hello"})
        self.world.write(EVENTS, f"c-{uid}", record, headers={"traceparent": PARENT})
        return record


@pytest.fixture(scope="module")
def played(world: SmallWorld) -> SmallWorld:
    story = Story(world)
    for uid, token in (("bob", "0a"), ("erin", "0b"), ("grace", DEAD), ("gus", BAD), ("leo", "0c"), ("mia", "0d")):
        story.bind(uid, token)
    story.bind("bob", "0a")
    story.bind("bob", "0e", version=1)
    story.state("unbind", "mia", token={"device": "bob-phone", "token": ("0a" + b"bob".hex()).ljust(64, "0"), "bind_ver": 2})
    story.state("mute", "mia", conv_id="c-mia", level=5)
    story.state("settings", "henry", phone="+49 30 123456")
    story.state("settings", "leo", push_when_desktop_online=False, hold_s=60)
    world.settle(USER_STATE)
    world.presence("erin", "erin-phone")
    world.presence("leo", "leo-pc", platform="pc")
    story.message("bob")
    story.message("bob", push={"content": "now", "force": {"mode": "all"}})
    story.message("bob", expire_at_ms=now_ms() - 1)
    sms = {"title": "T", "content": "hello", "sms": True}
    for uid in ("grace", "gus", "henry"):
        story.message(uid, push=sms)
    story.message("mia")
    first = story.message("erin")
    story.message("erin", push={"content": "by both ways", "strategy": 4})
    story.message("erin", kind="revoke", revoke={"target_msg_id": "m-none", "badge": "keep"})
    held = story.message("leo")
    for uid, device, event in (("erin", "erin-phone", first), ("leo", "leo-pc", held)):
        wanted = event["event_id"]
        world.await_written("im.deliveries", lambda record, id=wanted: record.json()["event"]["event_id"] == id)
        story.state("ack", uid, device=device, conn_epoch=41, msg_ids=[event["msg_id"]])
    world.write(EVENTS, "bad", b'{"v":1}')
    world.await_written("push.results", lambda record: record.json()["verdict"] == "parked")
    world.settle(EVENTS, USER_STATE)
    return world


@pytest.mark.parametrize("topic", OUTPUTS)
def test_the_worker_writes_valid_records(played: SmallWorld, topic: str) -> None:
    name = OUTPUTS[topic]
    records = [record.json() for record in played.read(topic)]
    assert records
    for record in records:
        assert not complaints(name, record), record
        assert not unknown_fields(name, record), record


@pytest.mark.parametrize("topic", OUTPUTS)
def test_the_worker_writes_every_field_of_the_schema(played: SmallWorld, topic: str) -> None:
    schema = SCHEMAS[OUTPUTS[topic]]
    records = [record.json() for record in played.read(topic)]
    assert set(schema["properties"]) - {key for record in records for key in record} == set()
    if topic == "im.deliveries":
        targets = [target for record in records for target in record["to"]]
        fields = schema["properties"]["to"]["items"]["properties"]
        assert set(fields) - {key for target in targets for key in target} == set()
    if topic in ("push.results", "push.state-results", "push.sms"):
        word = {"push.results": "verdict", "push.state-results": "outcome", "push.sms": "reason"}[topic]
        assert set(schema["properties"][word]["enum"]) == {record[word] for record in records}


def test_the_trace_context_of_an_event_is_in_its_records(played: SmallWorld) -> None:
    """By way of carillon.parked and carillon.chunks too; a malformed one is in none, and counted."""
    story = Story(played)
    story.count = 1000
    later = story.message("bob", push={"content": "later", "send_at_ms": now_ms() + 1_500})
    members = {f"member-{index}": 0 for index in range(2_100)}
    played.redis.client().hset("g:{im:crowd}", mapping=members)
    large = story.message("nobody", conv={"id": "crowd", "type": "group"}, to={})
    head = {"v": 1, "kind": "message", "app": "im", "sent_ms": now_ms(), "push": {"content": "hello"}, "to": {"uids": ["bob"]}}
    head |= {"conv": {"id": "c-bad", "type": "p2p"}, "from": {"uid": "alice"}, "event_id": "bad-parent", "msg_id": "bad-parent"}
    played.write(EVENTS, "c-bad", head, headers={"traceparent": "00-1-2-3"})

    def of(event: str, verdict: str) -> dict[str, Any]:
        def wanted(record: Written) -> bool:
            value = record.json()
            return value["event_id"] == event and value["verdict"] == verdict

        return played.await_written("push.results", wanted).json()

    assert of(later["event_id"], "parked")["traceparent"] == PARENT
    assert of(later["event_id"], "accepted")["traceparent"] == PARENT
    assert "traceparent" not in of("bad-parent", "accepted")
    played.settle(EVENTS, USER_STATE)
    played.settle("carillon.chunks")
    results = [record.json() for record in played.read("push.results")]
    crowd = [result for result in results if result["event_id"] == large["event_id"]]
    assert len(crowd) == len(members) and all(result["traceparent"] == PARENT for result in crowd)
    deliveries = [record.json() for record in played.read("im.deliveries")]
    own = [delivery for delivery in deliveries if delivery["event"]["event_id"].startswith("out-")]
    assert own and all(delivery["traceparent"] == PARENT for delivery in own)
    with urllib.request.urlopen(f"http://127.0.0.1:{played.worker.port}/metrics", timeout=30) as answer:
        assert "carillon_malformed_traceparents_total 1" in answer.read().decode()


def test_dead_letters_have_the_headers_of_the_schema(played: SmallWorld) -> None:
    letters = played.read("push.dead-letter")
    assert b'{"v":1}' in {letter.value for letter in letters}
    for letter in letters:
        assert not complaints("dead-letter-headers.json", letter.headers), letter.headers
        assert not unknown_fields("dead-letter-headers.json", letter.headers), letter.headers
