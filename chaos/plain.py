# SPDX-License-Identifier: Apache-2.0
"""Plain consumers beside the workers, restarted at the same moments: what a rollout costs by the broker alone.

They read the same topics in a group of their own, with the workers' settings of the group, and do nothing with a
record. A worker is held to two seconds beyond their worst delay.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from chaos.evidence import INPUTS, Delay
from chaos.servers import now_ms

# Shorter delays say nothing about a rebalance.
NOTED_MS = 100
COMMIT_MS = 1000


@dataclass
class Notes:
    """What all members have read, so that a record that is read again counts once."""

    log: Path
    delays: list[Delay] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _next: dict[tuple[str, int], int] = field(default_factory=dict)

    def say(self, text: str) -> None:
        with self.lock, self.log.open("a") as log:
            log.write(f"{now_ms()} {text}\n")

    def take(self, message: Message) -> None:
        at, place = now_ms(), (message.topic(), message.partition())
        with self.lock:
            if message.offset() < self._next.get(place, 0):
                return
            self._next[place] = message.offset() + 1
        produced = message.timestamp()[1]
        if at - produced >= NOTED_MS:
            self.delays.append(Delay(produced, place[0], place[1], at - produced))


class Member(threading.Thread):
    """A consumer that commits what it has read; one of a worker's shards, so to speak."""

    def __init__(self, name: str, bootstrap: str, session_ms: int, notes: Notes) -> None:
        super().__init__(daemon=True, name=name)
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "chaos-plain",
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": 1000,
            "fetch.wait.max.ms": 10,
            "partition.assignment.strategy": "range",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 2,
        }
        self._notes = notes
        self._ended = threading.Event()
        self.held = 0

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.held = len(partitions)
        self._notes.say(f"{self.name} assigned {self.held}")

    def _revoked(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        self._notes.say(f"{self.name} gives up {self.held}")
        self.held = 0
        self._commit(consumer, waits=True)
        self._notes.say(f"{self.name} committed")

    def _commit(self, consumer: Consumer, waits: bool) -> None:
        try:
            consumer.commit(asynchronous=not waits)
        except KafkaException:
            # Nothing new is read; or the group moved, and the next owner reads it again.
            return

    def run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe(list(INPUTS), on_assign=self._assigned, on_revoke=self._revoked)
        committed_ms = now_ms()
        while not self._ended.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self._notes.take(message)
            if now_ms() - committed_ms >= COMMIT_MS:
                committed_ms = now_ms()
                self._commit(consumer, waits=False)
        self._notes.say(f"{self.name} closes")
        consumer.close()
        self._notes.say(f"{self.name} closed")
        self.held = 0

    def end(self) -> None:
        self._ended.set()


class Plain:
    """As many members as the workers have shards, by the worker whose restarts they share."""

    def __init__(self, folder: Path, bootstrap: str, session_ms: int, shards: int) -> None:
        self._bootstrap = bootstrap
        self._session_ms = session_ms
        self._shards = shards
        self._members: dict[str, list[Member]] = {}
        self._notes = Notes(folder / "plain.log")

    def start(self, worker: str) -> None:
        self._members[worker] = [
            Member(f"{worker}-{shard}", self._bootstrap, self._session_ms, self._notes) for shard in range(self._shards)
        ]
        for member in self._members[worker]:
            member.start()

    def end(self, worker: str) -> None:
        """As SIGTERM does."""
        for member in self._members.pop(worker, []):
            member.end()

    @property
    def held(self) -> int:
        return sum(member.held for members in self._members.values() for member in members)

    def close(self) -> list[Delay]:
        """What took long, by the time at which it was produced."""
        for worker in list(self._members):
            self.end(worker)
        with self._notes.lock:
            return sorted(self._notes.delays, key=lambda delay: delay.at_ms)
