"""How long the broker itself takes for a rollout: plain consumers leave and join, and none of them drains.

A worker is held to five seconds beyond this.
"""

from __future__ import annotations

import threading
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos.evidence import INPUTS

# A rebalance is over when nothing moved for so long.
STILL_S = 3.0
LIMIT_S = 60.0


class Member(threading.Thread):
    """A consumer that only holds partitions; one of a worker's shards, so to speak."""

    def __init__(self, bootstrap: str, session_ms: int) -> None:
        super().__init__(daemon=True, name="calibration")
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "chaos-calibration",
                "session.timeout.ms": session_ms,
                "heartbeat.interval.ms": 1000,
                "partition.assignment.strategy": "range",
                "enable.auto.commit": False,
                "log_level": 2,
            }
        )
        self._ended = threading.Event()
        self.held = 0

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.held = len(partitions)

    def _revoked(self, _: Consumer, __: list[TopicPartition]) -> None:
        self.held = 0

    def run(self) -> None:
        self._consumer.subscribe(list(INPUTS), on_assign=self._assigned, on_revoke=self._revoked)
        while not self._ended.is_set():
            try:
                self._consumer.poll(0.1)
            except KafkaException:
                continue
        self.held = 0
        self._consumer.close()

    def end(self) -> None:
        self._ended.set()


class Calibration(threading.Thread):
    """Measures beside the run, in a group of its own."""

    def __init__(self, bootstrap: str, session_ms: int, partitions: int, workers: int, shards: int) -> None:
        super().__init__(daemon=True, name="calibration")
        self._broker = bootstrap
        self._session_ms = session_ms
        self._partitions = partitions
        self._shards = shards
        self._members = [self._member() for _ in range(workers * shards)]
        # None: the group did not come to rest.
        self.rebalance_ms: int | None = None

    def _member(self) -> Member:
        member = Member(self._broker, self._session_ms)
        member.start()
        return member

    def run(self) -> None:
        if self._rest() is not None:
            begun = time.monotonic()
            for member in self._members[: self._shards]:
                member.end()
            time.sleep(1.0)
            self._members += [self._member() for _ in range(self._shards)]
            whole_at = self._rest()
            if whole_at is not None:
                self.rebalance_ms = int((whole_at - begun) * 1000)
        for member in self._members:
            member.end()

    def _rest(self) -> float | None:
        """When the group last became whole, once it has been so for a while; None: not within the limit."""
        limit = time.monotonic() + LIMIT_S
        whole_at: float | None = None
        while (now := time.monotonic()) < limit:
            if sum(member.held for member in self._members) < self._partitions:
                whole_at = None
            elif whole_at is None:
                whole_at = now
            elif now - whole_at > STILL_S:
                return whole_at
            time.sleep(0.02)
        return None
