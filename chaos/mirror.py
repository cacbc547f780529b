# SPDX-License-Identifier: Apache-2.0
"""Another Kafka cluster with a copy of the workers' topics, as docs/operations.md tells to move to one."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from typing import BinaryIO

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from chaos.evidence import CHUNKS, DEAD_LETTER, EVENTS, PARKED, USER_STATE, Move, Read
from chaos.kafka import GROUP, Begins, producer, reader
from chaos.servers import Broker, SetupFault, TansuBroker, now_ms

MIRRORED = (EVENTS, USER_STATE, CHUNKS, PARKED)
# The recipe leaves out user state; with its offset too it must work as well.
TRANSLATED = (EVENTS, CHUNKS, PARKED)
TOO_MUCH_SHARE = 0.3
# A translated offset is lower than the true one by up to so many records.
BELOW = 6
PATIENCE_S = 20.0
# The protocol's number of a request.
OFFSET_FETCH = 9


class Mirror(threading.Thread):
    """Copies records with key, time and headers, from a place that lies later than the first cluster's beginning."""

    def __init__(self, source: str, broker: Broker | TansuBroker, partitions: int, seed: int) -> None:
        super().__init__(daemon=True, name="mirror")
        self.broker = broker
        self._source = source
        self._rng = random.Random(f"mirror/{seed}")
        self._places = [TopicPartition(topic, index) for topic in MIRRORED for index in range(partitions)]
        self._copied: dict[tuple[str, int], int] = {}
        self._faults: list[str] = []
        self._ended = threading.Event()
        self._consumers: list[Consumer] = []
        self.begins: Begins = {}

    def open(self) -> None:
        self.broker.open()
        self._group = reader(self._source, GROUP)
        self._target = reader(self.broker.bootstrap, GROUP)
        self._reader = reader(self._source, "chaos-mirror")
        self._consumers = [self._group, self._target, self._reader]
        ids = [consumer.list_topics(timeout=5).cluster_id for consumer in self._consumers[:2]]
        if ids[0] == ids[1]:
            raise SetupFault(f"both Kafka clusters have the id {ids[0]}")
        for place in self._committed():
            # Retention has removed some of the settled records, or all.
            self.begins[place.topic, place.partition] = self._rng.randint(min(1, place.offset), place.offset)
        self._copied = dict(self.begins)
        self._reader.assign([TopicPartition(*key, begin) for key, begin in self.begins.items()])
        self._writer = producer(self.broker.bootstrap, lambda error: None)
        self.start()

    def _committed(self) -> list[TopicPartition]:
        """The group's offsets; 0 where it has none."""
        found = committed(self._source, GROUP, self._places)
        return [TopicPartition(*key, max(offset, 0), metadata) for key, (offset, metadata) in found.items()]

    def run(self) -> None:
        while not self._ended.is_set():
            self._writer.poll(0)
            message = self._reader.poll(0.05)
            if message is not None and message.error() is None:
                self._copy(message)

    def _copy(self, message: Message) -> None:
        key = (message.topic(), message.partition())
        expected = message.offset() - self.begins[key]

        def note(error: KafkaError | None, copy: Message) -> None:
            if error is not None or copy.offset() != expected:
                self._faults.append(f"{key} {message.offset()}: {error or copy.offset()}, not at {expected}")
                return
            self._copied[key] = message.offset() + 1

        self._writer.produce(
            message.topic(),
            value=message.value(),
            key=message.key(),
            partition=message.partition(),
            timestamp=message.timestamp()[1],
            headers=message.headers() or [],
            on_delivery=note,
        )

    def catch_up(self) -> None:
        """Until it has all that the first cluster has; nobody writes there meanwhile."""
        ends = {(at.topic, at.partition): self._group.get_watermark_offsets(at, timeout=5)[1] for at in self._places}
        end = time.monotonic() + PATIENCE_S
        while missing := [key for key, offset in ends.items() if self._copied[key] < offset]:
            if self._faults or time.monotonic() > end:
                raise SetupFault(f"the mirror does not have all of {missing[:3]}: {self._faults[:3]}")
            time.sleep(0.05)

    def translate(self) -> Move:
        """Gives the mirror the group's offsets, with their metadata, as MirrorMaker does."""
        self.catch_up()
        topics = [*TRANSLATED, USER_STATE] if self._rng.random() < TOO_MUCH_SHARE else TRANSLATED
        move = Move(now_ms(), _tree(self.begins))
        offsets = []
        for at in self._committed():
            key = (at.topic, at.partition)
            if at.offset == 0 or at.topic not in topics:
                continue
            offset = max(0, at.offset - self.begins[key] - self._rng.randint(0, BELOW))
            offsets.append(TopicPartition(*key, offset, at.metadata))
            move.translated.setdefault(key[0], {})[str(key[1])] = offset + self.begins[key]
        _commit(self._target, offsets)
        return move

    def as_first(self, record: Read) -> Read:
        """A record of the mirror's output topics. A dead letter names a place."""
        if record.topic == DEAD_LETTER:
            key = (record.headers["carillon-topic"], int(record.headers["carillon-partition"]))
            place = int(record.headers["carillon-offset"]) + self.begins.get(key, 0)
            record.headers["carillon-offset"] = str(place)
        return record

    def end(self) -> None:
        self._ended.set()
        if self.is_alive():
            self.join(5)
        for consumer in self._consumers:
            consumer.close()


def committed(bootstrap: str, group: str, places: list[TopicPartition]) -> dict[tuple[str, int], tuple[int, str]]:
    """Offsets with their metadata, by the protocol itself (OffsetFetch, version 1): the client library gives metadata
    with what lies behind it in memory."""
    topics: dict[str, list[int]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(place.partition)
    body = struct.pack(">hhi", OFFSET_FETCH, 1, 1) + _text("chaos") + _text(group) + struct.pack(">i", len(topics))
    for topic, partitions in topics.items():
        body += _text(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as link, link.makefile("rb") as answer:
        link.sendall(struct.pack(">i", len(body)) + body)
        return _offsets(answer)


def _offsets(answer: BinaryIO) -> dict[tuple[str, int], tuple[int, str]]:
    def number(form: str) -> int:
        return struct.unpack(form, answer.read(struct.calcsize(form)))[0]

    def text() -> str:
        return answer.read(max(0, number(">h"))).decode()

    found: dict[tuple[str, int], tuple[int, str]] = {}
    number(">q")  # its length and the request's number
    for _ in range(number(">i")):
        topic = text()
        for _ in range(number(">i")):
            partition, offset, metadata, error = number(">i"), number(">q"), text(), number(">h")
            if error:
                raise SetupFault(f"the broker does not give the offset of {topic}[{partition}]: error {error}")
            found[topic, partition] = (offset, metadata)
    return found


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _commit(group: Consumer, offsets: list[TopicPartition]) -> None:
    if not offsets:
        return
    refused = [at for at in group.commit(offsets=offsets, asynchronous=False) if at.error is not None]
    if refused:
        raise SetupFault(f"the mirror took no offset of {refused[0]}")


def _tree(begins: Begins) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in begins.items():
        found.setdefault(topic, {})[str(partition)] = offset
    return found
