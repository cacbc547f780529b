# SPDX-License-Identifier: Apache-2.0
"""The evidence, joined: what each event asks for, whose each token was, when each record was settled."""

from __future__ import annotations

import binascii
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from chaos.evidence import EVENTS, FINAL_VERDICTS, USER_STATE, Evidence, Instant, Move, Produced, Push, Read
from chaos.replication import SLOTS, Failover, failovers_of, restored
from chaos.traffic import APP, BIG_GROUP

# What a settled change may still be overtaken by.
GRACE_MS = 1000
# A worker that was stopped between its last look and its write sends one thing when it goes on.
THAW_MS = 150
# What a bind needs to be applied, and a push to be corrected after it.
BIND_MS = 3000
# How long after an incident user state may still be late.
DISTURBANCE_MS = 20_000
# How far back the messages lie behind which one may wait.
QUEUE_MS = 10_000
# Orders that end a worker. Outcomes from so long before are counted.
ENDS = ("term", "kill")
COUNTED_MS = 2000
# Faults after which answers on the connection may be lost.
SILENT = ("freeze", "close")
# The verdict of a recipient that waits in a topic of the workers.
PARKED = "parked"
# Kinds of orders that fall on Redis.
REDIS = ("redis", "cluster", "sentinel")
# Orders that make no state late.
# From then on Redis takes no writes.
NO_WRITES = ("redis-full", "redis-replica", "redis-lonely")
HARMLESS = ("apns", "kafka-mirror", "redis-backup")


@dataclass
class Event:
    """A message or a recall. Of repeats the first counts."""

    event_id: str
    msg_id: str
    kind: str
    conv: str
    conv_type: str
    partition: int
    offset: int
    at_ms: int
    sent_ms: int
    seq: int | None
    expire_at_ms: int
    recipients: frozenset[str]
    value: dict[str, Any]

    @property
    def target(self) -> str:
        return self.value.get("revoke", {}).get("target_msg_id", "")

    @property
    def lowers(self) -> bool:
        return self.kind == "revoke" and self.value["revoke"].get("badge", "decrease") == "decrease"

    @property
    def is_for_nobody(self) -> bool:
        """A recall that expired before a worker can read the group's members: it has one record without recipient."""
        has_members_in_redis = "uids" not in self.value.get("to", {})
        return has_members_in_redis and not self.lowers and self.expire_at_ms <= self.at_ms + 1


@dataclass(frozen=True)
class Bind:
    uid: str
    device: str
    token: str
    version: int
    at_ms: int
    # None: never seen to be committed.
    settled_ms: int | None


@dataclass(frozen=True)
class Mark:
    """A read receipt."""

    up_to_seq: int | None
    up_to_ms: int | None
    sent_ms: int
    settled_ms: int | None
    at_ms: int = 0

    def covers(self, event: Event) -> bool:
        if self.up_to_ms is not None and event.sent_ms <= self.up_to_ms:
            return True
        return self.up_to_seq is not None and event.seq is not None and event.seq <= self.up_to_seq


@dataclass(frozen=True)
class Report:
    """A client's own number."""

    value: int
    client_ms: int
    at_ms: int
    settled_ms: int | None


@dataclass(frozen=True)
class Ack:
    at_ms: int
    settled_ms: int | None


@dataclass(frozen=True)
class Deadline:
    """Of a delivery: when it was written, and until when its ack is waited for."""

    at_ms: int
    ack_by_ms: int


@dataclass
class Facts:
    evidence: Evidence
    events: dict[str, Event] = field(default_factory=dict)
    by_event_id: dict[str, Event] = field(default_factory=dict)
    # Every place where a record of an event lies, repeats included.
    places: dict[str, list[Produced]] = field(default_factory=lambda: defaultdict(list))
    binds: list[Bind] = field(default_factory=list)
    binds_of_token: dict[str, list[Bind]] = field(default_factory=lambda: defaultdict(list))
    marks: dict[tuple[str, str], list[Mark]] = field(default_factory=lambda: defaultdict(list))
    recalls: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    reports: dict[str, list[Report]] = field(default_factory=lambda: defaultdict(list))
    mutes: dict[tuple[str, str], int] = field(default_factory=dict)
    # Both by (uid, device, msg_id).
    acks: dict[tuple[str, str, str], Ack] = field(default_factory=dict)
    deadlines: dict[tuple[str, str, str], Deadline] = field(default_factory=dict)
    # Final records.
    results: dict[tuple[str, str], list[Read]] = field(default_factory=lambda: defaultdict(list))
    # (event, user) with the times of records that say `parked`: the event was settled before the user's part was done.
    parked: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    accepted: dict[str, list[Push]] = field(default_factory=lambda: defaultdict(list))
    breaks: list[Instant] = field(default_factory=list)
    # Requests whose connection then went silent or was closed.
    silences: list[Push] = field(default_factory=list)
    failovers: list[Failover] = field(default_factory=list)
    # What a check let pass since a failover may have lost a write, by kind.
    allowed: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._index_commits()
        self._index_produced()
        self._index_outputs()

    # Commits.

    def _index_commits(self) -> None:
        self._commits: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        for commit in sorted(self.evidence.commits, key=lambda commit: commit.at_ms):
            offsets, times = self._commits.setdefault((commit.topic, commit.partition), ([], []))
            # A committed offset that went back is none that settles anything new.
            if not offsets or commit.offset > offsets[-1]:
                offsets.append(commit.offset)
                times.append(commit.at_ms)

    def settled_ms(self, topic: str, partition: int, offset: int) -> int | None:
        """When the record's offset was first seen committed; None: never."""
        offsets, times = self._commits.get((topic, partition), ([], []))
        index = bisect_left(offsets, offset + 1)
        return times[index] if index < len(times) else None

    # What was produced.

    def _index_produced(self) -> None:
        for record in self.evidence.produced:
            if record.value is None:
                continue
            if record.topic == EVENTS:
                self._event(record, record.value)
            elif record.topic == USER_STATE:
                self._state(record, record.value)

    def _event(self, record: Produced, value: dict[str, Any]) -> None:
        self.places[value["event_id"]].append(record)
        if value["event_id"] in self.by_event_id:
            return
        event = Event(
            event_id=value["event_id"],
            msg_id=value["msg_id"],
            kind=value["kind"],
            conv=value["conv"]["id"],
            conv_type=value["conv"]["type"],
            partition=record.partition,
            offset=record.offset,
            at_ms=record.at_ms,
            sent_ms=value["sent_ms"],
            seq=value.get("server_seq"),
            expire_at_ms=value.get("expire_at_ms", value["sent_ms"] + 86_400_000),
            recipients=self._recipients(value),
            value=value,
        )
        self.by_event_id[event.event_id] = event
        self.events[event.msg_id] = event
        if event.kind == "revoke":
            self.recalls[event.target].append(event)

    def _recipients(self, value: dict[str, Any]) -> frozenset[str]:
        to = value.get("to", {})
        uids = to.get("uids") or self.evidence.run.groups.get(value["conv"]["id"], {})
        return frozenset(uids) - {value["from"]["uid"]} - set(to.get("exclude", []))

    def _state(self, record: Produced, value: dict[str, Any]) -> None:
        settled = self.settled_ms(record.topic, record.partition, record.offset)
        uid, kind = value["uid"], value["kind"]
        if kind == "bind":
            token = value["token"]
            bind = Bind(uid, token["device"], token["token"], token["bind_ver"], record.at_ms, settled)
            self.binds.append(bind)
            self.binds_of_token[bind.token].append(bind)
        elif kind == "read":
            mark = Mark(value.get("up_to_seq"), value.get("up_to_ms"), value["sent_ms"], settled, record.at_ms)
            self.marks[(uid, value["conv_id"])].append(mark)
        elif kind == "badge_report":
            self.reports[uid].append(Report(value["value"], value["client_ms"], record.at_ms, settled))
        elif kind == "mute":
            self.mutes[(uid, value["conv_id"])] = value["level"]
        elif kind == "ack":
            for msg_id in value["msg_ids"]:
                self.acks.setdefault((uid, value["device"], msg_id), Ack(record.at_ms, settled))

    # What came of it.

    def _index_outputs(self) -> None:
        for record in self.evidence.results:
            key = (record.value.get("event_id", ""), record.value.get("uid", ""))
            if record.value.get("verdict") in FINAL_VERDICTS:
                self.results[key].append(record)
            elif record.value.get("verdict") == PARKED:
                self.parked.setdefault(key, []).append(record.at_ms)
        for push in self.evidence.pushes:
            if push.accepted:
                self.accepted[push.apns_id].append(push)
        for delivery in self.evidence.deliveries:
            self._delivery(delivery)
        self.silences = [push for push in self.evidence.pushes if push.fault.startswith(SILENT)]
        self.breaks = [instant for instant in self.evidence.instants if instant.breaks]
        self.failovers = failovers_of(self.evidence.replication) + restored(self.evidence.instants)

    def _delivery(self, delivery: Read) -> None:
        msg_id = delivery.value.get("event", {}).get("msg_id", "")
        for target in delivery.value.get("to", []):
            if target.get("ack_by_ms") is not None:
                key = (target["uid"], target["device"], msg_id)
                self.deadlines[key] = Deadline(delivery.at_ms, target["ack_by_ms"])

    def pending_users(self) -> set[str]:
        """Users of whom some record was never committed."""
        pending: set[str] = set()
        for record in self.evidence.produced:
            value = record.value
            if value is None or self.settled_ms(record.topic, record.partition, record.offset) is not None:
                continue
            if record.topic == USER_STATE:
                pending.add(value["uid"])
            else:
                pending |= self.by_event_id[value["event_id"]].recipients
        return pending

    def opened_ms(self, push: Push) -> int:
        """The latest moment at which the push's stream can have opened: the ledger's line is written at its answer."""
        return push.at_ms - (self.evidence.run.delay_ms if push.accepted else 0)

    def is_badge_alone(self, record: Read) -> bool:
        """Whether a record is of a push that only tells a number, whatever event it names."""
        pushes = self.accepted.get(record.value.get("pid", ""), [])
        return bool(pushes) and not pushes[0].msg_id

    def owner_of(self, push: Push) -> str:
        """Whom a push is for; one that names nobody is for whoever had bound the token last. Empty: it is open."""
        if push.uid:
            return push.uid
        binds = [bind for bind in self.binds_of_token.get(push.token, []) if bind.at_ms <= push.at_ms]
        last = max(binds, key=lambda bind: bind.version).uid if binds else ""
        return "" if self.is_contested(push.token, push.at_ms) else last

    def is_contested(self, token: str, at_ms: int) -> bool:
        """Whether the token went from one user to another about then: until the bind is applied, either may own it."""
        binds = self.binds_of_token.get(token, [])
        before = [bind for bind in binds if (bind.settled_ms or bind.at_ms) < at_ms - BIND_MS]
        around = [bind for bind in binds if bind not in before and bind.at_ms <= at_ms + BIND_MS]
        owner = [max(before, key=lambda bind: bind.version)] if before else []
        return len({bind.uid for bind in owner + around}) > 1

    def device_of(self, push: Push) -> str:
        binds = self.binds_of_token.get(push.token, [])
        own = [bind.device for bind in binds if bind.uid == push.uid]
        return (own or [bind.device for bind in binds] or [""])[-1]

    def thawed(self, at_ms: int) -> bool:
        """Whether a stopped worker went on just before."""
        return any(instant.resumes and 0 <= at_ms - instant.at_ms <= THAW_MS for instant in self.evidence.instants)

    def may_be_lost(self, uid: str, start_ms: int, end_ms: int | None, by_ms: int | None = None) -> bool:
        """Whether a failover may have lost what was written of the user between these moments; None: not known.

        `by_ms`: it was lost by then.
        """
        end = end_ms if end_ms is not None else start_ms + DISTURBANCE_MS
        return any(
            failover.may_have_lost(slot_of(uid), start_ms, end) and (by_ms is None or failover.lost_ms <= by_ms)
            for failover in self.failovers
        )

    def state_may_be_lost(self, uid: str, start_ms: int, end_ms: int | None) -> bool:
        """The same of user state: after a move to another Kafka cluster all of it is applied again."""
        return not self.evidence.run.moves and self.may_be_lost(uid, start_ms, end_ms)

    def is_left_behind(self, event: Event, uid: str, start_ms: int, end_ms: int) -> bool:
        """A move lay between, after which no record of the user's part is read again: the group's offset is higher."""
        return any(
            start_ms <= move.at_ms <= end_ms
            # Members of a large group and parked pushes have other records.
            and event.conv != BIG_GROUP
            and (event.event_id, uid) not in self.parked
            and event.offset < move.translated.get(EVENTS, {}).get(str(event.partition), 0)
            for move in self.evidence.run.moves
        )

    def was_open(self, event: Event, move: Move) -> bool:
        """Whether the event was in work when the workers of the first cluster ended, or had ended just before."""
        ends = [instant.at_ms for instant in self.evidence.instants if instant.what in ENDS]
        end = max((at for at in ends if at < move.at_ms), default=move.at_ms)
        records = (self.results.get((event.event_id, uid), []) for uid in event.recipients)
        firsts = (min((record.at_ms for record in several), default=end) for several in records)
        return event.at_ms <= end and any(first > end - COUNTED_MS for first in firsts)

    def claim_may_be_lost(self, event: Event, uid: str) -> bool:
        """The user was claimed between the event's record and the first that came of it."""
        records = self.results.get((event.event_id, uid), [])
        return self.may_be_lost(uid, event.at_ms, min((record.at_ms for record in records), default=None))

    def slots_of(self, uid: str, event: Event) -> set[int]:
        """Where the keys are that a message to the user needs: his own, his tokens', the conversation's, of a group the
        message's, which has who has finished, and of a recall its target's. Also those of what came just before in the
        conversation: it goes first."""
        tokens = [bind.token for bind in self.binds if bind.uid == uid]
        names = [uid, event.conv, *tokens]
        for other in self.by_event_id.values():
            if other.conv == event.conv and event.at_ms - QUEUE_MS <= other.at_ms <= event.at_ms:
                names += [other.target] if other.target else []
                names += [] if other.value.get("to", {}).get("uids") else [other.msg_id]
        return {slot_of(name) for name in names}

    def disturbed(self, start_ms: int, end_ms: int, what: str | tuple[str, ...] = "") -> bool:
        """Whether anything was done to the system around that span that may make state late."""
        return any(
            start_ms - DISTURBANCE_MS <= instant.at_ms <= end_ms
            for instant in self.evidence.instants
            if instant.what.startswith(what) and not instant.what.startswith(HARMLESS)
        )

    def took_no_writes(self, at_ms: int) -> bool:
        """Whether Redis refused writes then."""
        before = [one for one in self.evidence.instants if one.what.startswith("redis-") and one.at_ms <= at_ms]
        return bool(before) and max(before, key=lambda one: one.at_ms).what in NO_WRITES

    def broke_between(self, start_ms: int, end_ms: int) -> bool:
        """Whether an instant at which work may be done again lies there."""
        return any(start_ms <= instant.at_ms <= end_ms for instant in self.breaks)

    def push_text(self, push: Push) -> str:
        answer = str(push.status) if push.status is not None else push.fault
        return (
            f"ledger line {push.line + 1}: {self.clock(push.at_ms)} conn {push.connection} token {push.token[:8]}… "
            f"apns-id {push.apns_id} → {answer} {push.reason}".rstrip()
        )

    def record_text(self, record: Read) -> str:
        value = record.value
        keys = ("verdict", "reason", "device", "pid", "status", "attempts")
        told = " ".join(f"{key} {value[key]}" for key in keys if key in value)
        return f"{record.topic}[{record.partition}]@{record.offset}: {self.clock(record.at_ms)} {told}"

    def event_text(self, event: Event) -> str:
        return (
            f"{EVENTS}[{event.partition}]@{event.offset}: {self.clock(event.at_ms)} {event.kind} {event.msg_id} "
            f"in {event.conv}"
        )

    def clock(self, at_ms: int) -> str:
        return f"{(at_ms - self.evidence.run.base_ms) / 1000:.3f} s"


def slot_of(name: str) -> int:
    """A Cluster's slot of all keys that have this user, token or group as their hash tag (CRC16 XMODEM)."""
    return binascii.crc_hqx(f"{APP}:{name}".encode(), 0) % SLOTS
