# SPDX-License-Identifier: Apache-2.0
"""Performs a schedule on a world."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from chaos.evidence import Instant
from chaos.schedule import Action
from chaos.servers import now_ms
from chaos.stores import Group
from chaos.traffic import DEAD_PREFIX

if TYPE_CHECKING:
    from chaos.world import World

# After these some pushes have an unknown fate, or the group moves: what is in flight may go twice.
BREAKING = frozenset({"kill", "term", "start", "pause", "resume", "apns-kill"})


def scenario(actions: list[Action], base_ms: int, start_ms: int, delay_ms: int) -> dict[str, Any]:
    """The simulator's file for a start at `start_ms`: rules count from there, the schedule from `base_ms`."""
    rules: list[dict[str, Any]] = []
    for action in actions:
        if action.verb != "apns-rule":
            continue
        shift = (base_ms - start_ms) / 1000
        start, end = action.at_s + shift, action.until_s + shift
        if end <= 0:
            continue
        match = {**action.rule["match"], "after_s": round(max(0, start), 2), "until_s": round(end, 2)}
        rules.append({**action.rule, "match": match})
    rules.append({"match": {"token": DEAD_PREFIX}, "answer": {"status": 410, "reason": "Unregistered"}})
    rules.append({"match": {}, "answer": {"delay_ms": delay_ms}})
    return {"rules": rules}


class Nemesis(threading.Thread):
    def __init__(self, world: World, actions: list[Action]) -> None:
        super().__init__(daemon=True, name="nemesis")
        self._world = world
        self._actions = actions
        self.instants: list[Instant] = []
        self.fault: Exception | None = None

    def run(self) -> None:
        try:
            for action in self._actions:
                wait = self._world.base_ms / 1000 + action.at_s - time.time()
                if wait > 0:
                    time.sleep(wait)
                self._perform(action)
        except Exception as fault:  # told by the world: a nemesis that did nothing proves nothing
            self.fault = fault

    def _perform(self, action: Action) -> None:
        self._world.say(f"{action.verb} {action.target}")
        if action.verb == "await":
            return self._world.fleet.await_ends()
        if action.verb == "drain":
            return self._world.drain()
        self._note(action)
        prefix, _, order = action.verb.partition("-")
        if prefix == "kafka":
            self._world.move(order)
        elif prefix == "redis":
            self._world.redis.perform(order, action.target)
        elif isinstance(self._world.redis, Group) and prefix == self._world.redis.kind:
            self._world.redis.own(order, action.target)
        elif prefix == "broker":
            self._world.broker.take_down() if order == "down" else self._world.broker.bring_up()
        elif prefix == "apns":
            self._apns(order)
        else:
            self._worker(action)
        return None

    def _note(self, action: Action) -> None:
        breaks = action.verb in BREAKING
        self.instants.append(Instant(now_ms(), action.verb, action.target, breaks, action.verb == "resume"))

    def _apns(self, order: str) -> None:
        if order == "kill":
            self._world.simulator.kill()
        elif order == "start":
            self._world.open_simulator(now_ms())

    def _worker(self, action: Action) -> None:
        worker = self._world.fleet[action.target]
        if action.verb == "kill":
            worker.killed = True
            worker.kill()
        elif action.verb == "pause":
            worker.pause()
        elif action.verb == "resume":
            worker.resume()
        elif action.verb == "term":
            worker.terminate()
            if self._world.plain is not None:
                self._world.plain.end(action.target)
        elif action.verb == "start":
            if self._world.plain is not None:
                self._world.plain.start(action.target)
            self._world.fleet.await_end(worker)
            if action.version:
                worker.command[0] = str(self._world.settings.program(action.version))
            worker.open()
            self.instants.append(Instant(now_ms(), "started", worker.name, breaks=True))
