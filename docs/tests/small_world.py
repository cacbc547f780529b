# SPDX-License-Identifier: Apache-2.0
"""One worker with its servers, with methods to write records and to read the worker's output."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from chaos.servers import Broker, RedisServer, Simulator, Worker, configuration, now_ms

EVENTS, USER_STATE = "im.events", "im.user-state"
PARTITIONS = 2
# The simulator has rules for tokens with these prefixes.
DEAD, BAD = "dead", "bad0"
SCENARIO = {
    "rules": [
        {"match": {"token": DEAD}, "answer": {"status": 410, "reason": "Unregistered", "timestamp": 4_000_000_000_000}},
        {"match": {"token": BAD}, "answer": {"status": 400, "reason": "BadDeviceToken"}},
    ]
}


@dataclass(frozen=True)
class Place:
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Written:
    """A record that the worker wrote."""

    topic: str
    key: bytes
    value: bytes
    headers: dict[str, str]

    def json(self) -> dict[str, Any]:
        return json.loads(self.value)


class Tail:
    """Follows a topic from its beginning."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.records: list[Written] = []
        self._next = dict.fromkeys(range(PARTITIONS), 0)
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tail", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])

    def poll(self, seconds: float) -> None:
        message = self._consumer.poll(seconds)
        if message is not None and message.error() is None:
            self._next[message.partition()] = message.offset() + 1
            headers = {name: text.decode() for name, text in message.headers() or []}
            self.records.append(Written(self.topic, message.key() or b"", message.value() or b"", headers))

    def catch_up(self, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        for index in self._next:
            end = self._consumer.get_watermark_offsets(TopicPartition(self.topic, index), timeout=5)[1]
            while self._next[index] < end:
                assert time.monotonic() < deadline, f"{self.topic}: {self._next} of {end} read"
                self.poll(1)

    def close(self) -> None:
        self._consumer.close()


class SmallWorld:
    def __init__(self, binary: Path, folder: Path) -> None:
        self.folder = folder
        self.redis = RedisServer(folder)
        self.broker = Broker(folder, binary, PARTITIONS)
        self.simulator = Simulator(folder, binary)
        self.config = folder / "carillon.yaml"
        self.worker = Worker("worker", folder, binary, self.config, {})
        self._tails: dict[str, Tail] = {}

    def open(self, apps: Sequence[dict[str, Any]] = ()) -> None:
        """Starts all servers; `apps` are more apps of the worker, with the first one's APNs server and credentials."""
        self.redis.start()
        self.redis.await_ready()
        self.broker.open()
        self.simulator.open(SCENARIO)
        options = {"session_ms": 6000, "shards": 1, "in_flight": 100, "window": 20_000}
        text = configuration(self.broker.bootstrap, self.redis.place, self.simulator, **options)
        config = {**yaml.safe_load(text), "state_results": True}
        config["kafka"]["traceparent"] = True
        first = config["apps"][0]
        common = {name: first[name] for name in ("environment", "endpoint", "ca_file", "credentials")}
        config["apps"] += [{**common, **app} for app in apps]
        # JSON is YAML too, and has no anchors.
        self.config.write_text(json.dumps(config))
        self.worker.open()
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "message.max.bytes": 2_000_000, "log_level": 2})

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()
        for process in (self.worker, self.simulator, self.broker, self.redis):
            process.kill()

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def write(self, topic: str, key: str, value: dict[str, Any] | bytes, headers: dict[str, str] | None = None) -> Place:
        """Writes a record and returns its place; the broker has it then."""
        places: list[Place] = []
        raw = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()

        def note(error: object, message: Any) -> None:  # noqa: ANN401
            assert error is None, error
            places.append(Place(topic, message.partition(), message.offset()))

        self.producer.produce(topic, key=key, value=raw, headers=headers or {}, on_delivery=note)
        assert self.producer.flush(20) == 0 and places, "the broker takes no records"
        return places[0]

    def settle(self, *topics: str, seconds: float = 180) -> None:
        """Waits until every record of these topics is committed."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "carillon"})
        places = [TopicPartition(topic, index) for topic in topics for index in range(PARTITIONS)]
        deadline = time.monotonic() + seconds
        try:
            while True:
                ends = [consumer.get_watermark_offsets(place, timeout=5)[1] for place in places]
                found = consumer.committed(places, timeout=5)
                if all(max(at.offset, 0) >= end for at, end in zip(found, ends, strict=True)):
                    return
                assert self.worker.runs, self.worker.tail()
                assert time.monotonic() < deadline, f"not settled: {found} of {ends}; {self.worker.tail()}"
                time.sleep(0.1)
        finally:
            consumer.close()

    def _tail(self, topic: str) -> Tail:
        if topic not in self._tails:
            self._tails[topic] = Tail(self.bootstrap, topic)
        return self._tails[topic]

    def read(self, topic: str) -> list[Written]:
        """All records in a topic now."""
        tail = self._tail(topic)
        tail.catch_up()
        return tail.records

    def await_written(self, topic: str, wanted: Callable[[Written], bool], seconds: float = 60) -> Written:
        """The first record of a topic for which `wanted` holds."""
        tail = self._tail(topic)
        deadline = time.monotonic() + seconds
        looked = 0
        while time.monotonic() < deadline:
            for record in tail.records[looked:]:
                if wanted(record):
                    return record
            looked = len(tail.records)
            tail.poll(0.2)
        raise AssertionError(f"{topic}: no such record among {looked}; {self.worker.tail()}")

    def ledger(self) -> list[dict[str, Any]]:
        """The simulator's ledger: one entry per request."""
        ledger = self.folder / "ledger.ndjson"
        return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []

    def pushed_tokens(self) -> set[str]:
        return {entry["token"] for entry in self.ledger()}

    def presence(self, uid: str, device: str, state: str = "fg", platform: str = "ios", gateway: str = "gw-t") -> None:
        client = self.redis.client()
        client.set(f"gw:{{{gateway}}}", 7, ex=600)
        client.hset(f"p:{{im:{uid}}}", device, f"{state},{platform},{gateway},7,41,{now_ms()},-,-,-")
