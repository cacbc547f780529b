# SPDX-License-Identifier: Apache-2.0
"""One run: servers, workers and traffic; then quiet; then what is left behind."""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from chaos import stores, traffic
from chaos.evidence import (
    CHUNKS,
    DEAD_LETTER,
    DELIVERIES,
    FEEDBACK,
    FINAL_VERDICTS,
    INPUTS,
    OUTPUTS,
    PARKED,
    RESULTS,
    Commit,
    Delay,
    Evidence,
    Instant,
    Move,
    Read,
    Run,
    read_ledger,
)
from chaos.facts import slot_of
from chaos.fleet import Fleet
from chaos.gateway import Acks, Presence
from chaos.kafka import Tail, Watcher, Writer, ends_of
from chaos.mirror import Mirror
from chaos.nemesis import Nemesis, scenario
from chaos.plain import Plain
from chaos.servers import Broker, BrokerDied, SetupFault, Simulator, TansuBroker, configuration, now_ms
from chaos.settings import Settings

# The exit code of a worker that cannot use its configuration file.
BAD_CONFIGURATION = 78
# Until the last deliveries of a run are acknowledged.
DIGESTION_S = 1.0


class World:
    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self.settings = settings
        self._say = say
        self.folder = settings.folder
        self.config = self.folder / "carillon.yaml"
        self.first = self.broker = self._broker("broker")
        self.simulator = Simulator(self.folder, settings.binary)
        self.fleet = Fleet(settings, self.config, self.say)
        self.base_ms = 0
        self.people = traffic.population(settings.seed, settings.load)
        self.redis = stores.make(settings.redis, self.folder, self._busy_slots())
        self.reads: dict[str, list[Read]] = {topic: [] for topic in OUTPUTS}
        # Beside the workers, where a rollout is to be judged.
        self.plain: Plain | None = None
        # Another Kafka cluster, where the run moves to one.
        self.mirror: Mirror | None = None
        self.moves: list[Move] = []
        self.tails: list[Tail] = []
        self._commits: list[Commit] = []

    def _busy_slots(self) -> set[int]:
        """Of users, their tokens and groups, where there is a cluster."""
        tokens = [token for token, _ in self.people.tokens.values()]
        everybody = {uid for members in self.people.groups.values() for uid in members}
        return {slot_of(name) for name in (*self.people.users, *tokens, *self.people.groups, *everybody)}

    def _broker(self, name: str) -> Broker | TansuBroker:
        partitions = self.settings.partitions
        if self.settings.broker == "tansu" and self.settings.tansu:
            topics = [*INPUTS, *OUTPUTS, "push.sms", CHUNKS, PARKED]
            return TansuBroker(self.folder, self.settings.tansu, partitions, topics, name)
        return Broker(self.folder, self.settings.binary, partitions, name)

    def say(self, text: str) -> None:
        """With the time since the traffic began."""
        self._say(f"{(now_ms() - self.base_ms) / 1000:6.2f} s  {text}")

    def play(self) -> Evidence:
        try:
            self._open()
            evidence = self._run()
            evidence.save(self.folder)
            return evidence
        finally:
            self._close()

    def _run(self) -> Evidence:
        nemesis = Nemesis(self, self.settings.actions)
        nemesis.start()
        self._send_all()
        nemesis.join()
        if nemesis.fault is not None:
            raise SetupFault(f"the nemesis failed: {type(nemesis.fault).__name__}: {nemesis.fault}") from nemesis.fault
        ends = self._quiet()
        badges = self._badges()
        delays = self.plain.close() if self.plain else []
        self.fleet.terminate_all()
        stats = self._stats()
        for tail in self.tails:
            tail.end()
        self.presence.end()
        self.watcher.end()
        gaps = [gap for tail in self.tails for gap in tail.offsets.gaps]
        if gaps:
            raise SetupFault(f"the broker did not deliver all of its records: {', '.join(gaps)}")
        return self._evidence(nemesis.instants, ends, badges, stats, delays)

    # Set-up.

    def _open(self) -> None:
        self.redis.open()
        self.broker.open()
        planned = now_ms() + int(self.settings.setup_s * 1000)
        self.base_ms = planned
        self.open_simulator(now_ms())
        self.config.write_text(self._configuration())
        if self.settings.base:
            self._ask(self.settings.base, "--offline")
        self._write_redis()
        self._write_first()
        self._watch()
        begun = time.monotonic()
        self.fleet.open()
        if "rolling" in self.settings.fault:
            self.plain = Plain(self.folder, self.broker.bootstrap, self.settings.session_ms, self.settings.shards)
            for name in self.settings.shape.workers:
                self.plain.start(name)
        self.fleet.await_group(self._group_is_whole, max(60, 2 * self.settings.setup_s))
        self.say(f"all partitions have an owner, {time.monotonic() - begun:.1f} s after the workers' start")
        # Rules of the scenario count from the simulator's start: if the group was late, it starts anew.
        if now_ms() > planned:
            self.base_ms = now_ms() + 3000
            self.simulator.kill()
            self.open_simulator(now_ms())
        time.sleep(max(0.0, self.base_ms / 1000 - time.time()))

    def open_simulator(self, start_ms: int) -> None:
        rules = scenario(self.settings.actions, self.base_ms, start_ms, self.settings.delay_ms)
        self.simulator.open(rules)

    def _configuration(self) -> str:
        settings = self.settings
        return configuration(
            self.broker.bootstrap,
            self.redis.place,
            self.simulator,
            settings.session_ms,
            settings.shards,
            settings.in_flight,
            settings.window,
            settings.coalesce_s,
        )

    def _write_redis(self) -> None:
        client = self.redis.client()
        for group, members in self.people.groups.items():
            client.hset(f"g:{{{traffic.APP}:{group}}}", mapping=members)
        self.presence = Presence(self.redis, self.people.devices)
        self.presence.renew(now_ms())
        self.presence.start()

    def _write_first(self) -> None:
        self.writer = Writer(self.broker.bootstrap)
        self.acks = Acks(self.settings.seed, self.writer, self.settings.ack_share)
        self.acks.start()
        for send in traffic.first_records(self.people, now_ms()):
            self.writer.write(send)
        self.writer.flush()

    def _watch(self) -> None:
        self.watcher = Watcher(self.broker.bootstrap, self.settings.partitions)
        self.watcher.start()
        self._follow(self.broker, self._take)

    def _follow(self, broker: Broker | TansuBroker, take: Callable[[Read], None]) -> None:
        tail = Tail(broker.bootstrap, list(OUTPUTS), self.settings.partitions, take)
        self.tails.append(tail)
        tail.start()

    def _take(self, record: Read) -> None:
        self.reads[record.topic].append(record)
        if record.topic == DELIVERIES:
            self.acks.take(record)

    # Another Kafka cluster.

    def move(self, order: str) -> None:
        """An order `kafka-…`: the steps of docs/operations.md, in their order."""
        if order == "mirror":
            self._open_mirror()
        elif order == "move":
            self._move()
        elif order == "point" and self.mirror is not None:
            self.writer.move(self.mirror.broker.bootstrap, self.mirror.begins, self.mirror.catch_up)

    def _open_mirror(self) -> None:
        self.mirror = mirror = Mirror(
            self.broker.bootstrap, self._broker("mirror"), self.settings.partitions, self.settings.seed
        )
        mirror.open()
        self._follow(mirror.broker, lambda record: self._take(mirror.as_first(record)))

    def _move(self) -> None:
        """No worker runs, what they have written is mirrored, and so is the group; then they get the other address."""
        if self.mirror is None:
            raise SetupFault("there is no mirror to move to")
        self.fleet.await_ends()
        self.moves.append(self.mirror.translate())
        self.watcher.end()
        self._commits = self.watcher.commits
        self.broker = self.mirror.broker
        self.config.write_text(self._configuration())
        if self._ask(self.settings.binary):
            raise SetupFault(f"`carillon check` refuses the other Kafka cluster: {self.folder / 'check.out'}")
        self.watcher = Watcher(self.broker.bootstrap, self.settings.partitions, begins=self.mirror.begins)
        self.watcher.start()

    def _ask(self, binary: Path, *options: str) -> int:
        """`carillon check`, before workers start. Gives its exit code."""
        command = [str(binary), "check", "--config", str(self.config), *options]
        with (self.folder / "check.out").open("wb") as out:
            ended = subprocess.run(command, stdout=out, stderr=out, timeout=60, env={**os.environ, **self.fleet.env})
        if ended.returncode == BAD_CONFIGURATION:
            raise SetupFault(
                f"{binary} refuses {self.config}, and exits with {BAD_CONFIGURATION}: an earlier version does not know "
                "newer keys. As long as it may run, give all workers a file without them (here: `configuration` in "
                f"chaos/servers.py). {self.folder / 'check.out'} names the keys"
            )
        return ended.returncode

    def drain(self, seconds: float = 60) -> None:
        """Waits until the workers' own topics are settled: nothing is parked."""
        end = time.monotonic() + seconds
        while not all(self.watcher.is_through(topic) for topic in (CHUNKS, PARKED)):
            if time.monotonic() > end:
                raise SetupFault(f"work was still parked after {seconds} s")
            time.sleep(0.1)
        self.say("nothing is parked")

    # Traffic.

    def _send_all(self) -> None:
        story = traffic.Story(self.settings.seed, self.settings.load, self.people, self.base_ms)
        for send in story.tell():
            while (wait := send.at_ms / 1000 - time.time()) > 0:
                self.writer.poll(min(wait, 0.05))
            self.writer.write(send)

    # Quiet.

    def _quiet(self) -> dict[str, dict[str, tuple[int, int]]]:
        """All healthy, until all is committed or the time is over. Gives each partition's committed offset and end."""
        self.say("quiet")
        self._heal()
        deadline = time.monotonic() + self.settings.quiet_s
        self._await_commits(deadline)
        time.sleep(DIGESTION_S)
        self.acks.end()
        self.writer.flush()
        self._await_commits(deadline)
        self._insist_on_broker()
        return {
            topic: {str(index): (self.watcher.committed(topic, index), end) for index, end in partitions.items()}
            for topic, partitions in ends_of(self.writer.produced, self.settings.partitions).items()
        }

    def _insist_on_broker(self) -> None:
        if not self.broker.runs:
            raise BrokerDied(f"the broker died: {self.broker.head()}")

    def _heal(self) -> None:
        """All healthy again, whatever the schedule left."""
        self._insist_on_broker()
        self.fleet.heal()
        self.redis.heal()
        if not self.simulator.runs:
            self.open_simulator(now_ms())
        self.writer.flush()

    def _group_is_whole(self) -> bool:
        return self._all_committed() and (self.plain is None or self.plain.held >= self.settings.input_partitions)

    def _all_committed(self) -> bool:
        ends = ends_of(self.writer.produced, self.settings.partitions)
        return all(
            self.watcher.committed(topic, partition) >= end
            for topic, partitions in ends.items()
            for partition, end in partitions.items()
        )

    def _await_commits(self, deadline: float) -> None:
        """A message is settled with its chunks or its parked record written: their recipients are pushed after that."""
        while time.monotonic() < deadline and not self._is_all_settled():
            self.writer.poll(0.1)

    def _is_all_settled(self) -> bool:
        return self._all_committed() and all(self.watcher.is_through(topic) for topic in (CHUNKS, PARKED))

    # What is left behind.

    def _badge(self, uid: str) -> int | None:
        command = [str(self.settings.binary), "user", "--config", str(self.config)]
        command += ["--app", traffic.APP, "--user", uid, "--json"]
        ended = subprocess.run(command, capture_output=True, timeout=30, env={**os.environ, **self.fleet.env})
        if ended.returncode != 0:
            return None
        return int(json.loads(ended.stdout)["badge"])

    def _badges(self) -> dict[str, int]:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = dict(zip(self.people.users, pool.map(self._badge, self.people.users), strict=True))
        missing = [uid for uid, badge in found.items() if badge is None]
        if missing:
            raise SetupFault(f"`carillon user` does not tell the badge of {missing[:3]}")
        return {uid: badge for uid, badge in found.items() if badge is not None}

    def _stats(self) -> dict[str, int]:
        command = [str(self.settings.binary), "stats", "--config", str(self.config), "--app", traffic.APP, "--json"]
        ended = subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, **self.fleet.env})
        if ended.returncode != 0:
            raise SetupFault(f"`carillon stats` failed: {ended.stderr.decode()[:400]}")
        report = json.loads(ended.stdout)
        alone = next((row for row in report["push_types"] if row["push_type"] == "badge"), {})
        return {verdict: report["total"][verdict] - alone.get(verdict, 0) for verdict in FINAL_VERDICTS}

    def _evidence(
        self,
        instants: list[Instant],
        ends: dict[str, dict[str, tuple[int, int]]],
        badges: dict[str, int],
        stats: dict[str, int],
        delays: list[Delay],
    ) -> Evidence:
        settings = self.settings
        run = Run(
            seed=settings.seed,
            fault=settings.fault,
            redis=settings.redis,
            workers=len(settings.shape.workers),
            delay_ms=settings.delay_ms,
            burst_ms=int(settings.coalesce_s * 1000),
            base_ms=self.base_ms,
            partitions=settings.input_partitions,
            single=settings.fault == "single",
            schedule=[str(action) for action in settings.actions],
            groups=self.people.groups,
            devices=self.people.devices,
            lease_gaps=self.presence.gaps,
            ends=ends,
            badges=badges,
            stats=stats,
            moves=self.moves,
        )
        return Evidence(
            run=run,
            produced=sorted(self.writer.produced, key=lambda record: record.at_ms),
            pushes=read_ledger(self.folder / "ledger.ndjson"),
            results=self.reads[RESULTS],
            deliveries=self.reads[DELIVERIES],
            feedback=self.reads[FEEDBACK],
            dead=self.reads[DEAD_LETTER],
            commits=self._commits + self.watcher.commits,
            assignments=self.fleet.assignments,
            instants=sorted(instants + self.fleet.told(), key=lambda instant: instant.at_ms),
            exits=self.fleet.exits,
            replication=list(self.redis.watch.samples),
            plain=delays,
        )

    def _close(self) -> None:
        self.fleet.close()
        self.redis.close()
        if self.mirror is not None:
            self.mirror.end()
            self.mirror.broker.kill()
        for process in (self.simulator, self.first):
            process.kill()
