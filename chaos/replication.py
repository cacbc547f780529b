# SPDX-License-Identifier: Apache-2.0
"""What the servers of a replicated Redis tell of their copies, and what a failover may have lost.

Redis copies to replicas after it has answered. A replica that takes over tells up to which offset it had its master's
history, and the master told its offset several times a second: what it took later than it last stood at or below that
offset is gone.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import redis

from chaos.evidence import Instant, Sample
from chaos.servers import connect, now_ms

SLOTS = 16_384
EVERY_S = 0.1


@dataclass(frozen=True)
class Failover:
    """`old` lost its slots to `new`. What `old` took within the spans (both ends included) may be gone."""

    old: str
    new: str
    # When `new` was first seen as a master.
    at_ms: int
    slots: tuple[tuple[int, int], ...]
    spans: tuple[tuple[int, int], ...]
    # The master was there and helped (CLUSTER FAILOVER): nothing is lost.
    handed: bool = False
    # Until then everything was there; 0: not known.
    lost_ms: int = 0

    def serves(self, slot: int) -> bool:
        return any(low <= slot <= high for low, high in self.slots)

    def may_have_lost(self, slot: int, start_ms: int, end_ms: int) -> bool:
        """Whether something of that slot that was written between these two moments may be gone."""
        return (
            not self.handed
            and self.serves(slot)
            and any(start_ms <= end and start <= end_ms for start, end in self.spans)
        )


class Watch:
    """Asks each server about its copies, ten times a second."""

    def __init__(self, ports: dict[str, int]) -> None:
        self._names = {port: name for name, port in ports.items()}
        self._clients = {name: connect(port) for name, port in ports.items()}
        self._roles: dict[str, str] = {}
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(name,), daemon=True) for name in ports]
        self.samples: list[Sample] = []
        # Replicas that were asked to take over from a master that helps.
        self.handed: set[str] = set()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(3)

    def _run(self, name: str) -> None:
        while not self._ended.wait(EVERY_S):
            self.look(name)

    def look(self, name: str) -> None:
        """One sample more, if the server answers."""
        asked = now_ms()
        with suppress(redis.RedisError):
            told = self._clients[name].info("replication", "persistence")
            sample = self._sample(name, asked, told)
            with self._lock:
                self.samples.append(sample)

    def note(self, name: str, role: str) -> None:
        """What is done to a server: `gone`, `paused`, `resumed`."""
        at = now_ms()
        with self._lock:
            self.samples.append(Sample(name, at, at, role))

    def _sample(self, name: str, asked: int, told: dict) -> Sample:
        role = told["role"]
        is_new = role == "master" and self._roles.get(name) == "slave"
        is_handed = is_new and name in self.handed
        if is_new:
            self.handed.discard(name)
        self._roles[name] = role
        return Sample(
            node=name,
            asked_ms=asked,
            told_ms=now_ms(),
            role=role,
            offset=int(told["master_repl_offset"] if role == "master" else told.get("slave_repl_offset", 0)),
            changes=int(told["rdb_changes_since_last_save"]),
            history=str(told["master_replid"]),
            former=str(told["master_replid2"]),
            former_end=int(told["second_repl_offset"]),
            master=self._names.get(told.get("master_port", 0), ""),
            slots=self._slots(name) if is_new else [],
            handed=is_handed,
        )

    def _slots(self, name: str) -> list[tuple[int, int]]:
        """What a new master serves. It may be a moment before it knows."""
        try:
            for _ in range(50):
                if found := slots_of(self._clients[name]):
                    return found
                self._ended.wait(0.02)
        except redis.ResponseError:
            pass  # of no cluster
        return [(0, SLOTS - 1)]


def slots_of(client: redis.Redis) -> list[tuple[int, int]]:
    """What a node of a cluster serves, as it says itself."""
    for line in client.execute_command("CLUSTER", "NODES").splitlines():
        words = line.split()
        if "myself" in words[2]:
            ranges = [word.split("-") for word in words[8:] if not word.startswith("[")]
            return [(int(ends[0]), int(ends[-1])) for ends in ranges]
    return []


def restored(instants: Iterable[Instant]) -> list[Failover]:
    """A single Redis that started from a backup is as a replica that was cut off since then."""
    found: list[Failover] = []
    backup_ms: int | None = None
    for instant in instants:
        if instant.what == "redis-backup":
            backup_ms = instant.at_ms
        elif instant.what == "redis-restore" and backup_ms is not None:
            span = (backup_ms, instant.at_ms)
            found.append(
                Failover("redis", "its backup", instant.at_ms, ((0, SLOTS - 1),), (span,), lost_ms=instant.at_ms)
            )
    return found


def failovers_of(samples: Iterable[Sample]) -> list[Failover]:
    """Every time that a replica became a master, in the order of their times."""
    by_node: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_node[sample.node].append(sample)
    found: list[Failover] = []
    for node, told in by_node.items():
        told.sort(key=lambda sample: sample.told_ms)
        known = [sample for sample in told if sample.role in ("master", "slave")]
        for before, after in pairwise(known):
            if before.role == "slave" and after.role == "master":
                spans = tuple(_lost_spans(by_node.get(before.master, []), after))
                slots = tuple((low, high) for low, high in after.slots)
                found.append(Failover(before.master, node, after.told_ms, slots, spans, after.handed))
    return sorted(found, key=lambda failover: failover.at_ms)


def _lost_spans(old: Sequence[Sample], new: Sample) -> Iterable[tuple[int, int]]:
    """When the old master may have taken what the new one never got: spans in which it could answer."""
    copied = [
        index
        for index, sample in enumerate(old)
        if sample.role == "master" and sample.history == new.former and sample.offset < new.former_end
    ]
    if not copied:
        return
    span: list[Sample] = []
    for sample in old[copied[-1] :]:
        if sample.role in ("master", "resumed"):
            span.append(sample)
            continue
        if span:
            yield _span(span, sample)
        span = []
        if sample.role != "paused":
            return
    if span:
        yield _span(span, span[-1])


def _span(span: Sequence[Sample], end: Sample) -> tuple[int, int]:
    """Whom a signal ended could write until then; who is a replica now, until it was last written to."""
    if end.role in ("gone", "paused"):
        return span[0].asked_ms, end.told_ms
    told = [sample for sample in span if sample.role == "master"]
    last = max((i for i in range(1, len(told)) if told[i].changes != told[i - 1].changes), default=0)
    after = told[last + 1] if last + 1 < len(told) else end
    return span[0].asked_ms, after.told_ms
