# SPDX-License-Identifier: Apache-2.0
"""The gateway example with a worker: its deliveries are not pushed, and messages after its end are."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

from chaos.servers import Process, now_ms
from docs.tests.small_world import EVENTS, USER_STATE, SmallWorld, Written

GATEWAY = Path(__file__).parents[2] / "Examples/gateway/gateway.py"
UID, DEVICE = "dora", "dora-phone"
TOKEN = "d0" * 32


def message(world: SmallWorld, name: str) -> None:
    record: dict[str, Any] = {"v": 1, "kind": "message", "app": "im", "event_id": name, "sent_ms": now_ms(), "msg_id": name}
    record |= {"conv": {"id": "c-dora", "type": "p2p"}, "from": {"uid": "alice"}, "to": {"uids": [UID]}}
    world.write(EVENTS, "c-dora", {**record, "push": {"content": "hello"}})


def result(world: SmallWorld, name: str) -> tuple[str, str]:
    def wanted(record: Written) -> bool:
        return record.json()["event_id"] == name

    found = world.await_written("push.results", wanted).json()
    return found["verdict"], found["reason"]


def test_it_delivers_and_acknowledges_and_no_push_goes_out(world: SmallWorld) -> None:
    token = {"device": DEVICE, "token": TOKEN, "env": "production", "topic": "com.example.im", "type": "alert", "bind_ver": 1}
    head = {"v": 1, "kind": "bind", "app": "im", "event_id": "bind-dora", "sent_ms": now_ms()}
    world.write(USER_STATE, UID, {**head, "uid": UID, "token": token})
    world.settle(USER_STATE)
    command = [sys.executable, str(GATEWAY), "--brokers", world.bootstrap, "--redis", f"redis://127.0.0.1:{world.redis.port}"]
    gateway = Process("gateway", world.folder, [*command, "--user", f"{UID}:{DEVICE}"])
    gateway.start()
    try:
        assert gateway.await_line(0, 60) == "ready\n"
        message(world, "to-gateway")
        assert gateway.await_line(1, 60) == f"delivered to-gateway to {UID}/{DEVICE} (alert)\n"
        assert result(world, "to-gateway") == ("online", "acked")
        assert TOKEN not in world.pushed_tokens()
        gateway.send(signal.SIGTERM)
        assert gateway.child is not None and gateway.child.wait(90) == 0
    finally:
        gateway.kill()
    # The worker caches a lease for a second.
    time.sleep(1.1)
    message(world, "without-gateway")
    assert result(world, "without-gateway") == ("accepted", "ok")
    assert TOKEN in world.pushed_tokens()
