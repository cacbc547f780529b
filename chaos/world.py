"""One run: servers, workers and traffic; then quiet; then what is left behind."""

from __future__ import annotations

import concurrent.futures
import datetime
import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from chaos import traffic
from chaos.calibration import Calibration
from chaos.evidence import (
    DEAD_LETTER,
    DELIVERIES,
    FEEDBACK,
    INPUTS,
    OUTPUTS,
    RESULTS,
    Assignment,
    Evidence,
    Exit,
    Instant,
    Read,
    Run,
    read_ledger,
)
from chaos.gateway import Acks, Presence
from chaos.kafka import Tail, Watcher, Writer, ends_of
from chaos.nemesis import Nemesis, scenario
from chaos.schedule import Action, Shape
from chaos.servers import (
    Broker,
    RedisServer,
    SetupFault,
    Simulator,
    TansuBroker,
    Worker,
    configuration,
    now_ms,
)
from chaos.traffic import Load

BREAK_VARIABLE = "CARILLON_TEST_BREAK"


@dataclass(frozen=True)
class Settings:
    """What the command line says."""

    binary: Path
    folder: Path
    seed: int
    fault: str
    actions: list[Action]
    shape: Shape
    load: Load
    partitions: int = 4
    shards: int = 2
    delay_ms: int = 20
    # Pushes in flight per shard, unsettled records per partition: the configuration's own defaults.
    in_flight: int = 2000
    window: int = 20_000
    ack_share: float = 0.7
    quiet_s: float = 60.0
    # From the simulator's start to the traffic's: what the workers have to form their group.
    setup_s: float = 12.0
    broken: str = ""
    broker: str = "embedded"
    tansu: Path | None = None
    worker_env: dict[str, str] = field(default_factory=dict)


class World:
    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self.settings = settings
        self.say = say
        self.folder = settings.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.redis = RedisServer(self.folder)
        self.broker = self._broker()
        self.simulator = Simulator(self.folder, settings.binary)
        self.workers: dict[str, Worker] = {}
        self.base_ms = 0
        self.people = traffic.population(settings.seed, settings.load)
        self.reads: dict[str, list[Read]] = {topic: [] for topic in OUTPUTS}
        self.exits: list[Exit] = []
        self.assignments: list[Assignment] = []
        self._ended = threading.Event()
        self._noting = threading.Lock()

    def _broker(self) -> Broker | TansuBroker:
        partitions = self.settings.partitions
        if self.settings.broker == "tansu" and self.settings.tansu:
            topics = [*INPUTS, *OUTPUTS, "push.sms", "carillon.chunks", "carillon.parked"]
            return TansuBroker(self.folder, self.settings.tansu, partitions, topics)
        return Broker(self.folder, self.settings.binary, partitions)

    # The whole run.

    def play(self) -> Evidence:
        try:
            self._open()
            evidence = self._run()
            evidence.save(self.folder)
            return evidence
        finally:
            self._close()

    def _run(self) -> Evidence:
        calibration = self._calibrate()
        nemesis = Nemesis(self, self.settings.actions, self.say)
        nemesis.start()
        self._send_all()
        nemesis.join()
        if nemesis.fault is not None:
            raise SetupFault(f"the nemesis failed: {nemesis.fault!r}")
        self.say(f"{self._elapsed():6.2f} s  quiet")
        self._heal()
        deadline = time.monotonic() + self.settings.quiet_s
        self._await_quiet(deadline)
        self._await_digestion()
        self.acks.end()
        self.writer.flush()
        self._await_quiet(deadline)
        badges = self._badges()
        rebalance_ms = self._calibrated(calibration)
        self._terminate_all()
        self.tail.end()
        self.presence.end()
        self.watcher.end()
        return self._evidence(nemesis.instants, badges, rebalance_ms)

    # Set-up.

    def _open(self) -> None:
        self.redis.start()
        self.redis.await_ready()
        self.broker.open()
        planned = now_ms() + int(self.settings.setup_s * 1000)
        self.base_ms = planned
        self.open_simulator(now_ms())
        self.config = self.folder / "carillon.yaml"
        session_ms = int(self.settings.shape.session_s * 1000)
        text = configuration(
            self.broker.bootstrap,
            self.redis.port,
            self.simulator,
            session_ms,
            self.settings.shards,
            self.settings.in_flight,
            self.settings.window,
        )
        self.config.write_text(text)
        self._write_redis()
        self.writer = Writer(self.broker.bootstrap)
        self.acks = Acks(self.settings.seed, self.writer, self.settings.ack_share)
        self.acks.start()
        for send in traffic.first_records(self.people, now_ms()):
            self.writer.write(send)
        self.writer.flush()
        for name in self.settings.shape.workers:
            self.worker(name).open()
        self._watch()
        self._await_group()
        # Rules of the scenario count from the simulator's start: if the group was late, it starts anew.
        if now_ms() > planned:
            self.base_ms = now_ms() + 3000
            self.simulator.kill()
            self.open_simulator(now_ms())
        time.sleep(max(0.0, self.base_ms / 1000 - time.time()))

    def open_simulator(self, start_ms: int) -> None:
        rules = scenario(self.settings.actions, self.base_ms, start_ms, self.settings.delay_ms)
        self.simulator.open(rules)

    def _write_redis(self) -> None:
        client = self.redis.client()
        for group, members in self.people.groups.items():
            client.hset(f"g:{{{traffic.APP}:{group}}}", mapping=members)
        self.presence = Presence(self.redis, self.people.devices)
        self.presence.renew(now_ms())
        self.presence.start()

    def _watch(self) -> None:
        self.watcher = Watcher(self.broker.bootstrap, self.settings.partitions)
        self.watcher.start()
        self.tail = Tail(self.broker.bootstrap, list(OUTPUTS), self.settings.partitions, self._take)
        self.tail.start()
        threading.Thread(target=self._watch_workers, daemon=True, name="statusz").start()

    def _take(self, record: Read) -> None:
        self.reads[record.topic].append(record)
        if record.topic == DELIVERIES:
            self.acks.take(record)

    def _await_group(self) -> None:
        end = time.monotonic() + 60
        wanted = len(INPUTS) * self.settings.partitions
        while time.monotonic() < end:
            held = [self._held(name) for name in self.settings.shape.workers]
            if None not in held and sum(count or 0 for count in held) == wanted and self._all_committed():
                return
            time.sleep(0.1)
        raise SetupFault(f"the group did not form: {[self._held(name) for name in self.settings.shape.workers]}")

    # Workers.

    def worker(self, name: str) -> Worker:
        if name not in self.workers:
            env = dict(self.settings.worker_env)
            if self.settings.broken:
                env[BREAK_VARIABLE] = self.settings.broken
            self.workers[name] = Worker(name, self.folder, self.settings.binary, self.config, env)
        return self.workers[name]

    def _held(self, name: str) -> int | None:
        """How many partitions a worker holds; None: it did not say."""
        worker = self.workers[name]
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

    def _watch_workers(self) -> None:
        last: dict[str, int] = {}
        while not self._ended.wait(0.2):
            for name, worker in list(self.workers.items()):
                self._note_end(worker)
                held = self._held(name)
                if held is not None and held != last.get(name):
                    last[name] = held
                    self.assignments.append(Assignment(now_ms(), name, held))

    def _note_end(self, worker: Worker) -> None:
        with self._noting:
            if worker.noted or worker.runs or worker.child is None:
                return
            worker.noted = True
        code = worker.child.returncode
        end = Exit(now_ms(), worker.name, code, worker.asked_ms, worker.killed, worker.last, worker.tail())
        self.exits.append(end)
        self.say(f"{self._elapsed():6.2f} s  {worker.name} ended with {code}")

    def await_end(self, worker: Worker, seconds: float = 30) -> None:
        """Until a worker that was asked to end is gone; one that does not go is killed, which its exit code tells."""
        end = time.monotonic() + seconds
        while worker.runs and time.monotonic() < end:
            time.sleep(0.05)
        if worker.runs:
            worker.kill()
        self._note_end(worker)

    # What the broker itself needs for a rollout.

    def _calibrate(self) -> Calibration | None:
        if self.settings.fault != "rolling":
            return None
        shape, shards = self.settings.shape, self.settings.shards
        session_ms, partitions = int(shape.session_s * 1000), len(INPUTS) * self.settings.partitions
        made = Calibration(self.broker.bootstrap, session_ms, partitions, len(shape.workers), shards)
        made.start()
        return made

    def _calibrated(self, calibration: Calibration | None) -> int:
        if calibration is None:
            return 0
        calibration.join()
        if calibration.rebalance_ms is None:
            raise SetupFault("the broker's own rebalance could not be measured")
        return calibration.rebalance_ms

    # Traffic.

    def _elapsed(self) -> float:
        return (now_ms() - self.base_ms) / 1000

    def _send_all(self) -> None:
        story = traffic.Story(self.settings.seed, self.settings.load, self.people, self.base_ms)
        for send in story.tell():
            while (wait := send.at_ms / 1000 - time.time()) > 0:
                self.writer.poll(min(wait, 0.05))
            self.writer.write(send)

    # Quiet.

    def _heal(self) -> None:
        """All healthy again, whatever the schedule left."""
        if not self.broker.runs:
            raise SetupFault(f"the broker died: {self.broker.err.read_text(errors='replace')[:300]}")
        for worker in self.workers.values():
            worker.resume()
        if not any(worker.runs for worker in self.workers.values()):
            next(iter(self.workers.values())).open()
        self.redis.resume()
        if not self.redis.runs:
            self.redis.start()
        self.redis.await_ready()
        if not self.simulator.runs:
            self.open_simulator(now_ms())
        self.writer.flush()

    def _all_committed(self) -> bool:
        ends = ends_of(self.writer.produced, self.settings.partitions)
        return all(
            self.watcher.committed(topic, partition) >= end
            for topic, partitions in ends.items()
            for partition, end in partitions.items()
        )

    def _await_quiet(self, deadline: float) -> None:
        while time.monotonic() < deadline and not self._all_committed():
            self.writer.poll(0.1)

    def _await_digestion(self) -> None:
        """Until the last deliveries are acknowledged."""
        time.sleep(1.0)

    def _terminate_all(self) -> None:
        running = [worker for worker in self.workers.values() if worker.runs]
        for worker in running:
            worker.terminate(last=True)
        for worker in running:
            self.await_end(worker)

    # What is left behind.

    def _badge(self, uid: str) -> int | None:
        command = [str(self.settings.binary), "user", "--config", str(self.config)]
        command += ["--app", traffic.APP, "--user", uid, "--json"]
        ended = subprocess.run(command, capture_output=True, timeout=30, env=self.workers_env())
        if ended.returncode != 0:
            return None
        return int(json.loads(ended.stdout)["badge"])

    def workers_env(self) -> dict[str, str]:
        return next(iter(self.workers.values())).env

    def _badges(self) -> dict[str, int]:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = dict(zip(self.people.users, pool.map(self._badge, self.people.users), strict=True))
        missing = [uid for uid, badge in found.items() if badge is None]
        if missing:
            raise SetupFault(f"`carillon user` does not tell the badge of {missing[:3]}")
        return {uid: badge for uid, badge in found.items() if badge is not None}

    def _evidence(self, instants: list[Instant], badges: dict[str, int], rebalance_ms: int) -> Evidence:
        ends = ends_of(self.writer.produced, self.settings.partitions)
        run = Run(
            seed=self.settings.seed,
            fault=self.settings.fault,
            workers=len(self.settings.shape.workers),
            delay_ms=self.settings.delay_ms,
            base_ms=self.base_ms,
            partitions=len(INPUTS) * self.settings.partitions,
            single=self.settings.fault == "single",
            schedule=[str(action) for action in self.settings.actions],
            groups=self.people.groups,
            devices=self.people.devices,
            lease_gaps=self.presence.gaps,
            badges=badges,
            rebalance_ms=rebalance_ms,
        )
        for topic, partitions in ends.items():
            run.ends[topic] = {
                str(partition): (self.watcher.committed(topic, partition), end) for partition, end in partitions.items()
            }
        return Evidence(
            run=run,
            produced=sorted(self.writer.produced, key=lambda record: record.at_ms),
            pushes=read_ledger(self.folder / "ledger.ndjson"),
            results=self.reads[RESULTS],
            deliveries=self.reads[DELIVERIES],
            feedback=self.reads[FEEDBACK],
            dead=self.reads[DEAD_LETTER],
            commits=self.watcher.commits,
            assignments=self.assignments,
            instants=sorted(instants + self._rebalances(), key=lambda instant: instant.at_ms),
            exits=self.exits,
        )

    def _rebalances(self) -> list[Instant]:
        """When the group moved, as the workers' logs tell to the millisecond."""
        found: list[Instant] = []
        for worker in self.workers.values():
            found += rebalances_of(worker.name, worker.err.read_text(errors="replace"))
        # Every drained worker gave its partitions up: without these lines a lawful repeat would look like a defect.
        if not found and any(end.asked_ms is not None for end in self.exits):
            raise SetupFault("no worker's log tells when its partitions were revoked")
        return found

    def _close(self) -> None:
        self._ended.set()
        for process in [*self.workers.values(), self.simulator, self.broker, self.redis]:
            if process.runs:
                process.kill()


def rebalances_of(worker: str, log: str) -> list[Instant]:
    found: list[Instant] = []
    for line in log.splitlines():
        if '"partitions revoked"' not in line:
            continue
        try:
            at = milliseconds(json.loads(line))
        except ValueError:
            continue
        found.append(Instant(at, "revoked", worker, breaks=True))
    return found


def milliseconds(line: dict[str, object]) -> int:
    """The time of a log line."""
    for name in ("ts", "time", "at"):
        if isinstance(text := line.get(name), str):
            return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
        if isinstance(number := line.get(name), int | float):
            return int(number)
    raise ValueError("a log line without a time")
