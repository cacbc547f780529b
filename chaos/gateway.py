# SPDX-License-Identifier: Apache-2.0
"""The long connections: leases and presence in Redis, and the acks of what is delivered."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

from chaos.evidence import USER_STATE, Device, Read
from chaos.kafka import Writer
from chaos.servers import now_ms
from chaos.stores import TROUBLE, Store
from chaos.traffic import APP, GATEWAY, Send, ack

EPOCH = 7
LEASE_S = 10
# The worker may keep a lease that it read; around a gap it is open whom it takes for live.
SLACK_MS = 5000


class Presence(threading.Thread):
    """Renews the gateway's lease and its users' presence, and notes when the lease may have been void."""

    def __init__(self, store: Store, devices: list[Device]) -> None:
        super().__init__(daemon=True, name="presence")
        self._store = store
        self._devices = [device for device in devices if device.state]
        self._ended = threading.Event()
        self.gaps: list[tuple[int, int]] = []
        self._renewed_ms = 0

    def renew(self, since_ms: int) -> None:
        client = self._store.client()
        client.set(f"gw:{{{GATEWAY}}}", EPOCH, ex=LEASE_S)
        for device in self._devices:
            key = f"p:{{{APP}:{device.uid}}}"
            since, flags = (str(since_ms), "l") if device.state == "bg" else ("-", "-")
            state, platform = ("fg", "mac") if device.state == "desktop" else (device.state, "ios")
            value = f"{state},{platform},{GATEWAY},{EPOCH},1,{now_ms()},{since},-,{flags}"
            client.hset(key, device.device, value)
            client.expire(key, 180)
        self._renewed_ms = now_ms()

    def run(self) -> None:
        since = now_ms()
        while not self._ended.wait(2):
            before = self._renewed_ms
            try:
                self.renew(since)
            except TROUBLE:
                continue
            if self._renewed_ms - before > (LEASE_S - 2) * 1000:
                self.gaps.append((before - SLACK_MS, self._renewed_ms + SLACK_MS))

    def end(self) -> None:
        self._ended.set()
        self.join(5)
        if now_ms() - self._renewed_ms > (LEASE_S - 2) * 1000:
            self.gaps.append((self._renewed_ms - SLACK_MS, now_ms()))


class Acks(threading.Thread):
    """Acknowledges a share of the deliveries that want it, a little later."""

    def __init__(self, seed: int, writer: Writer, share: float) -> None:
        super().__init__(daemon=True, name="acks")
        self._rng = random.Random(f"acks/{seed}")
        self._writer = writer
        self._share = share
        self._lock = threading.Lock()
        self._due: list[Send] = []
        self._ended = threading.Event()
        self._count = 0

    def take(self, delivery: Read) -> None:
        msg_id = delivery.value.get("event", {}).get("msg_id", "")
        for target in delivery.value.get("to", []):
            if target.get("ack_by_ms") is None or self._rng.random() > self._share:
                continue
            self._count += 1
            at = now_ms() + self._rng.randint(50, 600)
            value = ack(f"ack{self._count}", at, target["uid"], target["device"], target["conn_epoch"], [msg_id])
            with self._lock:
                self._due.append(Send(at, USER_STATE, target["uid"], value))

    def run(self) -> None:
        while not self._ended.wait(0.05):
            now = now_ms()
            with self._lock:
                ready = [send for send in self._due if send.at_ms <= now]
                self._due = [send for send in self._due if send.at_ms > now]
            for send in ready:
                self._writer.write(replace(send, at_ms=now))

    def end(self) -> None:
        self._ended.set()
        self.join(5)
