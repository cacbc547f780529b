# SPDX-License-Identifier: Apache-2.0
"""Kafka as the harness uses it: writing the traffic, reading what came of it, watching what is committed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from chaos.evidence import INPUTS, Commit, Produced, Read
from chaos.servers import now_ms
from chaos.traffic import Send

GROUP = "carillon"
# (topic, partition) -> how much higher the first cluster's offsets are (`evidence.Move`).
Begins = dict[tuple[str, int], int]
_QUIET = {"log_level": 2, "socket.nagle.disable": True, "reconnect.backoff.max.ms": 500}


class Writer:
    """Writes records and notes where the broker put them. For any thread."""

    def __init__(self, bootstrap: str) -> None:
        self._last_error = ""
        self._producer = producer(bootstrap, self._note_error)
        self._begins: Begins = {}
        self._turn = threading.RLock()
        self._lock = threading.Lock()
        self.produced: list[Produced] = []
        self.failures: list[str] = []

    def write(self, send: Send) -> None:
        with self._turn:
            self._write(send, self._begins)

    def move(self, bootstrap: str, begins: Begins, catch_up: Callable[[], None]) -> None:
        """Writes to the mirror from now on, which has all that was written before."""
        with self._turn:
            self.flush()
            catch_up()
            self._producer = producer(bootstrap, self._note_error)
            self._begins = begins

    def _write(self, send: Send, begins: Begins) -> None:
        text = send.raw if send.value is None else json.dumps(send.value, separators=(",", ":"))

        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failures.append(str(error))
                return
            topic, partition = message.topic(), message.partition()
            place = (topic, partition, message.offset() + begins.get((topic, partition), 0))
            with self._lock:
                self.produced.append(Produced(now_ms(), *place, send.key, send.value, send.raw))

        self._producer.produce(send.topic, key=send.key, value=text, on_delivery=note)
        self._producer.poll(0)

    def _note_error(self, error: KafkaError) -> None:
        self._last_error = str(error)

    def poll(self, seconds: float = 0) -> None:
        self._producer.poll(seconds)

    def flush(self, seconds: float = 60) -> None:
        left = self._producer.flush(seconds)
        if left or self.failures:
            raise KafkaException(f"{left} records were not written; {self.failures[:3]}; {self._last_error}")


def producer(bootstrap: str, error_cb: Callable[[KafkaError], None]) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            # A record may be written twice where its answer was lost: the worker has to bear that, while an
            # idempotent producer can be dead for good after a cut.
            "max.in.flight.requests.per.connection": 1,
            "acks": "all",
            "linger.ms": 2,
            "message.timeout.ms": 120_000,
            "error_cb": error_cb,
            **_QUIET,
        }
    )


def reader(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
            **_QUIET,
        }
    )


class Watcher(threading.Thread):
    """Asks for the group's committed offsets and the partitions' ends, several times a second."""

    def __init__(self, bootstrap: str, partitions: int, every_s: float = 0.1, begins: Begins | None = None) -> None:
        super().__init__(daemon=True, name="commits")
        self._consumer = reader(bootstrap, GROUP)
        self._begins = begins or {}
        self._places = [TopicPartition(topic, index) for topic in INPUTS for index in range(partitions)]
        self._every_s = every_s
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._committed: dict[tuple[str, int], int] = {}
        self.commits: list[Commit] = []

    def run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                found = self._consumer.committed(self._places, timeout=1)
            except KafkaException:
                continue
            with self._lock:
                self._note(found)

    def _note(self, found: list[TopicPartition]) -> None:
        at = now_ms()
        for place in found:
            key = (place.topic, place.partition)
            offset = place.offset + self._begins.get(key, 0)
            if place.error is None and place.offset >= 0 and offset != self._committed.get(key):
                self._committed[key] = offset
                self.commits.append(Commit(at, place.topic, place.partition, offset))

    def committed(self, topic: str, partition: int) -> int:
        with self._lock:
            return self._committed.get((topic, partition), 0)

    def is_through(self, topic: str) -> bool:
        """Whether the group has committed all that stands in a topic; False where the broker does not say."""
        try:
            found = self._consumer.list_topics(topic, timeout=1).topics[topic]
            places = [TopicPartition(topic, index) for index in found.partitions]
            ends = {place.partition: self._consumer.get_watermark_offsets(place, timeout=1) for place in places}
            committed = self._consumer.committed(places, timeout=1)
        except (KafkaException, KeyError):
            return False
        return all(ends[place.partition][1] <= max(place.offset, 0) for place in committed)

    def end(self) -> None:
        self._ended.set()
        self.join(5)
        self._consumer.close()


def ends_of(produced: list[Produced], partitions: int) -> dict[str, dict[int, int]]:
    """The end of each input partition, from what the broker confirmed: nobody else writes there."""
    ends = {topic: dict.fromkeys(range(partitions), 0) for topic in INPUTS}
    for record in produced:
        ends[record.topic][record.partition] = max(ends[record.topic][record.partition], record.offset + 1)
    return ends


class Offsets:
    """Which record of each partition comes next. A gap is read once more; one that stays is named."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, int], int] = {}
        self._read_again: set[tuple[str, int, int]] = set()
        self.gaps: list[str] = []

    def take(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the record is the next one, or follows a gap that stays."""
        expected = self.next(topic, partition)
        if offset < expected:
            return False
        if offset > expected:
            gap = (topic, partition, expected)
            if gap not in self._read_again:
                self._read_again.add(gap)
                return False
            self.gaps.append(f"{topic}[{partition}]@{expected} to {offset - 1}")
        self._next[topic, partition] = offset + 1
        return True

    def next(self, topic: str, partition: int) -> int:
        return self._next.get((topic, partition), 0)


class Tail(threading.Thread):
    """Follows output topics from their beginning and keeps every record."""

    def __init__(self, bootstrap: str, topics: list[str], partitions: int, take: Callable[[Read], None]) -> None:
        super().__init__(daemon=True, name="tail")
        self._consumer = reader(bootstrap, "chaos-tail")
        self._consumer.assign([TopicPartition(topic, index, 0) for topic in topics for index in range(partitions)])
        self._ended = threading.Event()
        self._take = take
        self.offsets = Offsets()
        self.last_at = time.monotonic()

    def run(self) -> None:
        while not self._ended.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            self.last_at = time.monotonic()
            record = record_of(message)
            if self.offsets.take(record.topic, record.partition, record.offset):
                self._take(record)
                continue
            expected = self.offsets.next(record.topic, record.partition)
            if record.offset > expected:
                self._consumer.seek(TopicPartition(record.topic, record.partition, expected))

    def end(self, idle_s: float = 2.0) -> None:
        """Ends when nothing more came for a while."""
        while time.monotonic() - self.last_at < idle_s:
            time.sleep(0.1)
        self._ended.set()
        self.join(5)
        self._consumer.close()


def record_of(message: Message) -> Read:
    raw = message.value() or b""
    try:
        value: dict[str, Any] = json.loads(raw)
        if not isinstance(value, dict):
            value = {"raw": raw.decode(errors="replace")}
    except ValueError:
        value = {"raw": raw.decode(errors="replace")}
    headers = {name: (text or b"").decode(errors="replace") for name, text in message.headers() or []}
    at = value.get("at_ms", message.timestamp()[1])
    key = (message.key() or b"").decode(errors="replace")
    return Read(message.topic(), message.partition(), message.offset(), at, key, value, headers)
