# SPDX-License-Identifier: Apache-2.0
"""A small run in which all is well, made by hand; the falsifications break one thing of it each."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from chaos.evidence import (
    DEAD_LETTER,
    DELIVERIES,
    EVENTS,
    FEEDBACK,
    RESULTS,
    USER_STATE,
    Assignment,
    Commit,
    Device,
    Evidence,
    Exit,
    Instant,
    Move,
    Produced,
    Push,
    Read,
    Run,
)
from chaos.traffic import ack, bind

BASE = 1_700_000_000_000
DELAY = 20
# After the base, in ms: when a worker was killed.
KILL = 30_000


def pid(msg_id: str, uid: str, token: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{msg_id}/{uid}/{token}"))


class Builder:
    """Adds what a healthy worker would have left behind, event by event."""

    def __init__(self) -> None:
        self.evidence = Evidence(run=Run(seed=1, delay_ms=DELAY, base_ms=BASE, partitions=2, single=True))
        self.evidence.run.groups = {"g": {"ann": 0, "bob": 0, "cid": 5, "dan": 0, "eve": 1}}
        self.offsets = {EVENTS: 0, USER_STATE: 0}
        self.count = 0
        self.evidence.run.badges = {}
        self.tokens: dict[tuple[str, str], str] = {}

    def produce(self, at: int, topic: str, value: dict[str, Any] | None, settled: int | None = None) -> Produced:
        offset = self.offsets[topic]
        self.offsets[topic] += 1
        record = Produced(BASE + at, topic, 0, offset, "k", value, "" if value is not None else "{")
        self.evidence.produced.append(record)
        done = BASE + (settled if settled is not None else at + 200)
        self.evidence.commits.append(Commit(done, topic, 0, offset + 1))
        return record

    def bind(self, at: int, uid: str, device: str, token: str, version: int = 1) -> None:
        self.produce(at, USER_STATE, bind(f"b-{uid}-{token[:4]}", BASE + at, uid, device, token, version))
        self.tokens[(uid, device)] = token

    def event(self, at: int, msg_id: str, sender: str, uids: list[str], **fields: Any) -> dict[str, Any]:  # noqa: ANN401
        self.count += 1
        conv = fields.pop("conv", {"id": f"p-{sender}-{'-'.join(uids)}", "type": "p2p"})
        value = {
            "v": 1,
            "kind": "message",
            "app": "im",
            "event_id": f"e-{msg_id}",
            "msg_id": msg_id,
            "sent_ms": BASE + at,
            "server_seq": self.count,
            "conv": conv,
            "from": {"uid": sender},
            "push": {"content": "hello"},
        }
        if conv["type"] == "p2p":
            value["to"] = {"uids": uids}
        return value | fields

    def record(self, at: int, msg_id: str, uid: str, verdict: str, **fields: Any) -> Read:  # noqa: ANN401
        value = {"event_id": f"e-{msg_id}", "msg_id": msg_id, "uid": uid, "verdict": verdict, **fields}
        value = {name: field for name, field in value.items() if field is not None}
        read = Read(RESULTS, 0, len(self.evidence.results), BASE + at, uid, {**value, "at_ms": BASE + at})
        self.evidence.results.append(read)
        return read

    def push(self, at: int, msg_id: str, uid: str, device: str, badge: int | None = None, status: int = 200) -> Push:
        token = self.tokens[(uid, device)]
        made = Push(
            line=len(self.evidence.pushes),
            at_ms=BASE + at + DELAY,
            connection=1,
            token=token,
            apns_id=pid(msg_id, uid, token),
            status=status,
            reason="" if status == 200 else "ServiceUnavailable",
            fault="",
            msg_id=msg_id,
            uid=uid,
            badge=badge,
        )
        self.evidence.pushes.append(made)
        return made

    def pushed(self, at: int, msg_id: str, uid: str, device: str, badge: int | None = None) -> Push:
        """A push and its record."""
        push = self.push(at, msg_id, uid, device, badge)
        self.record(at + DELAY + 5, msg_id, uid, "accepted", reason="ok", device=device, pid=push.apns_id)
        return push

    def finish(self) -> Evidence:
        evidence = self.evidence
        evidence.run.ends = {topic: {"0": (end, end)} for topic, end in self.offsets.items()}
        evidence.pushes = numbered(evidence.pushes)
        return evidence


def numbered(pushes: list[Push]) -> list[Push]:
    """In the order of their times, as the simulator writes them."""
    return [replace(push, line=line) for line, push in enumerate(sorted(pushes, key=lambda push: push.at_ms))]


def good_run() -> Evidence:
    world = Builder()
    _state(world)
    _direct(world)
    _group(world)
    _recalls_and_reads(world)
    _connection(world)
    _dead(world)
    _moves(world)
    _kill(world)
    world.evidence.run.badges = {
        "ann": 3,
        "bob": 1,
        "cid": 0,
        "dan": 5,
        "eve": 1,
        "fay": 1,
        "gus": 1,
        "hal": 0,
        "ida": 0,
        "old": 1,
        "new": 1,
    }
    return world.finish()


def move_to_a_mirror(evidence: Evidence, at: int, translated: int = 0) -> None:
    """All workers end, and start on a mirror, where the group's offset of the events is `translated`."""
    evidence.run.moves = [Move(BASE + at, {EVENTS: {"0": 3}}, {EVENTS: {"0": translated}})]
    evidence.instants += [
        Instant(BASE + at - 200, "term", "w1", breaks=True),
        Instant(BASE + at + 50, "started", "w1", breaks=True),
        Instant(BASE + at + 100, "other-log", "w1"),
        Instant(BASE + at + 500, "resumed", "w1"),
    ]


def _state(world: Builder) -> None:
    world.bind(-5000, "ann", "ann-1", "a1" * 32)
    world.bind(-5000, "ann", "ann-2", "a2" * 32)
    world.bind(-5000, "bob", "bob-1", "b1" * 32)
    world.bind(-5000, "cid", "cid-1", "c1" * 32)
    world.bind(-5000, "dan", "dan-1", "d1" * 32)
    world.bind(-5000, "fay", "fay-1", "f1" * 32)
    world.bind(-5000, "gus", "gus-1", "dead" + "66" * 30)
    world.bind(-5000, "old", "phone", "99" * 32)
    world.evidence.run.devices = [Device("fay", "fay-1", "fg")]


def _direct(world: Builder) -> None:
    """Two messages to a user with two devices."""
    for number, at in ((1, 1000), (2, 2000)):
        world.produce(at, EVENTS, world.event(at, f"m{number}", "bob", ["ann"]))
        world.pushed(at + 30, f"m{number}", "ann", "ann-1", number)
        world.pushed(at + 31, f"m{number}", "ann", "ann-2", number)


def _group(world: Builder) -> None:
    """cid has muted it, eve hears mentions only and has no token, dan is the sender."""
    at = 3000
    group = {"id": "g", "type": "group"}
    value = world.event(at, "m3", "dan", [], conv=group, mention={"all": False, "uids": ["eve"]})
    world.produce(at, EVENTS, value)
    world.pushed(at + 30, "m3", "ann", "ann-1", 3)
    world.pushed(at + 32, "m3", "ann", "ann-2", 3)
    world.pushed(at + 33, "m3", "bob", "bob-1", 1)
    world.record(at + 40, "m3", "cid", "suppressed", reason="conv_muted")
    world.record(at + 41, "m3", "eve", "suppressed", reason="no_token")


def _recalls_and_reads(world: Builder) -> None:
    """m4 is recalled, m5 is read, m6 has a short life; all three of them were pushed in time."""
    to_cid = {"conv": {"id": "p-cid", "type": "p2p"}}
    world.produce(4000, EVENTS, world.event(4000, "m4", "bob", ["cid"]))
    world.pushed(4030, "m4", "cid", "cid-1", 1)
    recall = world.event(6000, "r4", "bob", ["cid"], kind="revoke")
    recall["revoke"] = {"target_msg_id": "m4"}
    world.produce(6000, EVENTS, recall)
    world.record(6050, "r4", "cid", "suppressed", reason="msg_push_off")
    world.produce(7000, EVENTS, world.event(7000, "m5", "bob", ["cid"], **to_cid))
    world.pushed(7030, "m5", "cid", "cid-1", 1)
    read = {"v": 1, "kind": "read", "app": "im", "event_id": "s5", "sent_ms": BASE + 8000, "uid": "cid"}
    world.produce(8000, USER_STATE, {**read, "conv_id": "p-cid", "up_to_ms": BASE + 7500})
    value = world.event(9000, "m6", "bob", ["dan"], expire_at_ms=BASE + 11_000)
    world.produce(9000, EVENTS, value)
    world.pushed(9030, "m6", "dan", "dan-1", 1)


def _connection(world: Builder) -> None:
    """fay looks at her phone: m7 goes by the long connection and is acknowledged."""
    value = world.event(10_000, "m7", "bob", ["fay"])
    world.produce(10_000, EVENTS, value)
    target = {"uid": "fay", "device": "fay-1", "conn_epoch": 1, "alert": True, "pushed": False}
    delivery = {"gateway": "gw1", "event": value, "to": [{**target, "ack_by_ms": BASE + 18_000}]}
    world.evidence.deliveries.append(Read(DELIVERIES, 0, 0, BASE + 10_030, "gw1", delivery))
    world.produce(10_300, USER_STATE, ack("k7", BASE + 10_300, "fay", "fay-1", 1, ["m7"]))
    world.record(10_350, "m7", "fay", "online", reason="acked", device="fay-1")


def _dead(world: Builder) -> None:
    """A record that is none, and a token that is no more."""
    place = world.produce(12_000, EVENTS, None)
    headers = {"carillon-topic": EVENTS, "carillon-partition": "0", "carillon-offset": str(place.offset)}
    world.evidence.dead.append(Read(DEAD_LETTER, 0, 0, BASE + 12_010, "k", {"raw": "{"}, headers))
    world.produce(13_000, EVENTS, world.event(13_000, "m8", "bob", ["gus"]))
    push = world.push(13_030, "m8", "gus", "gus-1", 1, status=410)
    world.record(13_060, "m8", "gus", "rejected", reason="Unregistered", device="gus-1", pid=push.apns_id)
    told = {"uid": "gus", "device": "gus-1", "token": push.token, "cause": "Unregistered"}
    world.evidence.feedback.append(Read(FEEDBACK, 0, 0, BASE + 13_061, push.token, told))


def _moves(world: Builder) -> None:
    """old's phone becomes new's; dan gets a new token."""
    world.produce(14_000, EVENTS, world.event(14_000, "m9", "bob", ["old"]))
    world.pushed(14_030, "m9", "old", "phone", 1)
    world.bind(16_000, "new", "phone", "99" * 32, version=10)
    world.produce(18_000, EVENTS, world.event(18_000, "m10", "bob", ["new"]))
    world.pushed(18_030, "m10", "new", "phone", 1)
    world.bind(20_000, "dan", "dan-1", "d2" * 32, version=2)
    world.produce(22_000, EVENTS, world.event(22_000, "m11", "bob", ["dan"], push={"content": "x", "force": {}}))
    world.pushed(22_030, "m11", "dan", "dan-1", 2)


def _kill(world: Builder) -> None:
    """A worker is killed with m12 in flight: it is accepted twice, which is lawful. m13 is refused before that."""
    evidence = world.evidence
    at = KILL - 100
    world.produce(at - 5000, EVENTS, world.event(at - 5000, "m13", "bob", ["dan"]), settled=KILL + 9000)
    world.push(at - 4970, "m13", "dan", "dan-1", 3, status=503)
    world.produce(at, EVENTS, world.event(at, "m12", "bob", ["dan"]), settled=KILL + 9000)
    world.push(at + 50, "m12", "dan", "dan-1", 4)
    evidence.instants.append(Instant(BASE + KILL, "kill", "w1", breaks=True))
    evidence.exits.append(Exit(BASE + KILL, "w1", -9, killed=True))
    evidence.instants.append(Instant(BASE + KILL + 2000, "started", "w1", breaks=True))
    evidence.instants.append(Instant(BASE + KILL + 7000, "revoked", "w2", breaks=True))
    world.pushed(KILL + 8000, "m13", "dan", "dan-1", 4)
    world.pushed(KILL + 8030, "m12", "dan", "dan-1", 4)
    # What was left of dan's talk, so that his last push has the highest number.
    world.produce(KILL + 9500, EVENTS, world.event(KILL + 9500, "m14", "bob", ["dan"]))
    world.pushed(KILL + 9530, "m14", "dan", "dan-1", 5)
    for worker in ("w1", "w2"):
        evidence.assignments.append(Assignment(BASE - 5000, worker, 1))
        evidence.exits.append(Exit(BASE + 60_000, worker, 0, BASE + 59_000, last=True))
