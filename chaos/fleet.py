# SPDX-License-Identifier: Apache-2.0
"""The workers of a run: started, watched, ended."""

from __future__ import annotations

import datetime
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos.evidence import Assignment, Exit, Instant
from chaos.schedule import BASE, THIS
from chaos.servers import SetupFault, Worker, now_ms
from chaos.settings import Settings

BREAK_VARIABLE = "CARILLON_TEST_BREAK"


class Fleet:
    """Notes how many partitions each worker holds, and how each of them ended."""

    def __init__(self, settings: Settings, config: Path, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._config = config
        self._say = say
        self._workers: dict[str, Worker] = {}
        self._noting = threading.Lock()
        self._ended = threading.Event()
        self.env = dict(settings.worker_env)
        if settings.broken:
            self.env[BREAK_VARIABLE] = settings.broken
        self.exits: list[Exit] = []
        self.assignments: list[Assignment] = []

    def __getitem__(self, name: str) -> Worker:
        """The worker of that name; it is made, and not started, where there is none."""
        if name not in self._workers:
            program = self._settings.program(BASE if name in self._settings.of_base else THIS)
            self._workers[name] = Worker(name, self._settings.folder, program, self._config, self.env)
        return self._workers[name]

    def __iter__(self) -> Iterator[Worker]:
        return iter(list(self._workers.values()))

    def open(self) -> None:
        for name in self._settings.shape.workers:
            self[name].open()
        threading.Thread(target=self._watch, daemon=True, name="statusz").start()

    def close(self) -> None:
        self._ended.set()
        for worker in self:
            worker.kill()

    def await_group(self, is_settled: Callable[[], bool], seconds: float = 60) -> None:
        """Until all partitions have an owner and what was written before the traffic is settled."""
        end = time.monotonic() + seconds
        held: list[int | None] = []
        while time.monotonic() < end:
            held = [self.held(name) for name in self._settings.shape.workers]
            if (
                None not in held
                and sum(count or 0 for count in held) == self._settings.input_partitions
                and is_settled()
            ):
                return
            time.sleep(0.1)
        raise SetupFault(f"the group did not form; the workers hold {held}")

    def held(self, name: str) -> int | None:
        """How many partitions a worker holds; None: it did not say."""
        worker = self[name]
        if not worker.runs:
            return 0
        if worker.paused:
            return None
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/statusz", timeout=1) as answer:
                shards = json.load(answer)["shards"]
            return sum(shard["assigned_partitions"] for shard in shards)
        except (OSError, ValueError, KeyError):
            return None

    def _watch(self) -> None:
        last: dict[str, int] = {}
        while not self._ended.wait(0.2):
            for worker in self:
                self._note_end(worker)
                held = self.held(worker.name)
                if held is not None and held != last.get(worker.name):
                    last[worker.name] = held
                    self.assignments.append(Assignment(now_ms(), worker.name, held))

    def _note_end(self, worker: Worker) -> None:
        with self._noting:
            if worker.noted or worker.runs or worker.child is None:
                return
            worker.noted = True
        code = worker.child.returncode
        end = Exit(now_ms(), worker.name, code, worker.asked_ms, worker.killed, worker.last, worker.tail())
        self.exits.append(end)
        self._say(f"{worker.name} ended with {code}")

    def await_ends(self) -> None:
        """Of all that were asked to end."""
        for worker in self:
            self.await_end(worker)

    def await_end(self, worker: Worker, seconds: float = 30) -> None:
        """Until a worker that was asked to end is gone; one that does not go is killed, which its exit code tells."""
        end = time.monotonic() + seconds
        while worker.runs and time.monotonic() < end:
            time.sleep(0.05)
        if worker.runs:
            worker.kill()
        self._note_end(worker)

    def heal(self) -> None:
        """Nobody is stopped, and somebody is there."""
        for worker in self:
            worker.resume()
        if not any(worker.runs for worker in self):
            self[self._settings.shape.workers[0]].open()

    def terminate_all(self) -> None:
        running = [worker for worker in self if worker.runs]
        for worker in running:
            self._keep_page(worker, "statusz")
            self._keep_page(worker, "metrics")
            worker.terminate(last=True)
        for worker in running:
            self.await_end(worker)

    def _keep_page(self, worker: Worker, page: str) -> None:
        """What a worker has in hand when all is done: whoever does not end can be asked what it waited for."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/{page}", timeout=2) as answer:
                (self._settings.folder / f"{worker.name}.{page}").write_bytes(answer.read())
        except OSError as why:
            self._say(f"{worker.name} gave no {page}: {why}")

    def told(self) -> list[Instant]:
        """What the workers' logs tell to the millisecond: when partitions were given up, and about older data."""
        found: list[Instant] = []
        for worker in self:
            found += told_by(worker.name, worker.err.read_text(errors="replace"))
        # Every drained worker gave its partitions up: without these lines a lawful repeat would look like a defect.
        is_told = any(instant.what == "revoked" for instant in found)
        if not is_told and any(end.asked_ms is not None for end in self.exits):
            raise SetupFault("no worker's log tells when its partitions were revoked")
        return found


# The beginning of a log line's text -> the name of its instant.
TOLD = {
    "partitions revoked": "revoked",
    "Redis has the user state of another Kafka cluster": "other-log",
    "Redis has its data again": "resumed",
}


def told_by(worker: str, log: str) -> list[Instant]:
    found: list[Instant] = []
    for line in log.splitlines():
        what = next((what for text, what in TOLD.items() if f'"{text}' in line), None)
        if what is None:
            continue
        try:
            at = milliseconds(json.loads(line))
        except ValueError:
            continue
        found.append(Instant(at, what, worker, breaks=what == "revoked"))
    return found


def milliseconds(line: dict[str, object]) -> int:
    """The time of a log line."""
    for name in ("ts", "time", "at"):
        if isinstance(text := line.get(name), str):
            return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
        if isinstance(number := line.get(name), int | float):
            return int(number)
    raise ValueError("a log line without a time")
