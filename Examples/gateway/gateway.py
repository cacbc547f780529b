# SPDX-License-Identifier: Apache-2.0
"""The other side of the long connection, as Carillon sees it: lease and presence in Redis, deliveries and acks in Kafka.

The connections are made up: each `--user uid:device` is always connected and accepts every message. README.md in this folder
describes a real gateway.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
import uuid
from typing import Any

import redis
from confluent_kafka import Consumer, Producer, TopicPartition

TOPIC = "im.deliveries"
LEASE_S, PRESENCE_S = 10, 180
RENEW_S = 3


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Gateway:
    def __init__(self, options: argparse.Namespace) -> None:
        self.id, self.app = options.id, options.app
        # uid -> connected devices; every connection has its own number.
        self.connections: dict[str, dict[str, int]] = {}
        for number, user in enumerate(options.user, 1):
            uid, _, device = user.partition(":")
            self.connections.setdefault(uid, {})[device] = number
        # A new epoch for each life of the gateway: presence of an earlier life is void from now on.
        self.epoch = now_ms()
        self.redis = redis.Redis.from_url(options.redis, socket_timeout=2)
        self.producer = Producer({"bootstrap.servers": options.brokers, "acks": "all", "linger.ms": 5})
        self.consumer = self.reader(options.brokers)
        self.runs = True

    def reader(self, brokers: str) -> Consumer:
        """Reads all of the topic from its present ends. They are looked up before the first lease, so no delivery is missed.

        It ignores deliveries to an earlier life: without an ack the worker pushes them. There is no consumer group.
        """
        settings = {"bootstrap.servers": brokers, "group.id": f"gateway-{self.id}", "enable.auto.commit": False}
        consumer = Consumer({**settings, "fetch.wait.max.ms": 20})
        topic = consumer.list_topics(TOPIC, timeout=10).topics[TOPIC]
        places = [TopicPartition(TOPIC, index) for index in topic.partitions]
        for place in places:
            place.offset = consumer.get_watermark_offsets(place, timeout=10)[1]
        consumer.assign(places)
        return consumer

    def renew(self) -> None:
        """Writes the lease and the presence. Both expire when this process dies."""
        line = self.redis.pipeline(transaction=False)
        line.set(f"gw:{{{self.id}}}", self.epoch, ex=LEASE_S)
        for uid, devices in self.connections.items():
            key = f"p:{{{self.app}:{uid}}}"
            for device, number in devices.items():
                # state, platform, gateway, its epoch, connection, last heard, in background since, open conversation, flags
                line.hset(key, device, f"fg,ios,{self.id},{self.epoch},{number},{now_ms()},-,-,-")
            line.expire(key, PRESENCE_S)
        line.execute()

    def deliver(self, record: dict[str, Any]) -> None:
        event = record["event"]
        for target in record["to"]:
            uid, device = target["uid"], target["device"]
            if device not in self.connections.get(uid, {}):
                continue
            # A real gateway writes to its connection here, and waits for the client's confirmation.
            kind = "alert" if target["alert"] else "no alert"
            print(f"delivered {event['msg_id']} to {uid}/{device} ({kind})", flush=True)
            if "ack_by_ms" in target:
                self.acknowledge(uid, device, event["msg_id"])

    def acknowledge(self, uid: str, device: str, msg_id: str) -> None:
        ack = {"v": 1, "kind": "ack", "app": self.app, "event_id": str(uuid.uuid4()), "sent_ms": now_ms()}
        ack |= {"uid": uid, "device": device, "conn_epoch": self.connections[uid][device], "msg_ids": [msg_id]}
        self.producer.produce("im.user-state", key=uid, value=json.dumps(ack))

    def run(self) -> None:
        self.renew()
        renewed = time.monotonic()
        print("ready", flush=True)
        while self.runs:
            if time.monotonic() - renewed > RENEW_S:
                self.renew()
                renewed = time.monotonic()
            message = self.consumer.poll(0.1)
            self.producer.poll(0)
            if message is not None and message.error() is None and message.key() == self.id.encode():
                self.deliver(json.loads(message.value()))

    def close(self) -> None:
        """Deletes the lease at an orderly end: the users get pushes at once."""
        self.redis.delete(f"gw:{{{self.id}}}")
        self.producer.flush(5)
        self.consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="An example of a gateway for Carillon.")
    parser.add_argument("--brokers", default="localhost:9092")
    parser.add_argument("--redis", default="redis://localhost:6379")
    parser.add_argument("--app", default="im")
    parser.add_argument("--id", default="gw-example", help="key of this gateway's deliveries, and of its lease")
    parser.add_argument(
        "--user", action="append", required=True, metavar="UID:DEVICE", help="who is connected; may be repeated"
    )
    gateway = Gateway(parser.parse_args())

    def end(*_: object) -> None:
        gateway.runs = False

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        gateway.run()
    finally:
        gateway.close()


if __name__ == "__main__":
    main()
