# SPDX-License-Identifier: Apache-2.0
"""Makes every alert fire by its fault, and end after it: a real Prometheus scrapes a real worker.

    python -m deploy.monitoring.drill [--binary .build/debug/carillon] [--only NAME,…] [--record]

redis-server, the embedded broker, the APNs simulator, a worker and Prometheus run on free ports of 127.0.0.1. The rules are
those of rules.py with windows of seconds (terms.DRILL). Exit code 0: each alert fired and ended. --record writes metrics.txt
anew from what the worker exported.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import redis
import yaml
from confluent_kafka import KafkaException

from chaos.evidence import EVENTS
from chaos.kafka import Writer
from chaos.servers import Broker, Process, RedisServer, Simulator, Worker, free_port, now_ms
from chaos.traffic import Send, bind
from deploy.monitoring.exported import PATH as EXPORTED
from deploy.monitoring.exported import parse_exposition, read_exported
from deploy.monitoring.rules import groups
from deploy.monitoring.terms import DRILL, PRODUCTION

TOP = Path(__file__).parents[2]
USERS = 80
# Users of a fault, by what the simulator does to tokens that begin so; it answers the others with 200.
PREFIXES = {
    "slow": "aa01",
    "forbidden": "aa02",
    "dead": "aa03",
    "freeze": "aa04",
    "goaway": "aa05",
    "error": "aa06",
    "topic": "aa07",
}
PER_FAULT = 300
SCENARIO = {
    "rules": [
        {"match": {"token": PREFIXES["slow"]}, "answer": {"delay_ms": 3500}},
        {"match": {"token": PREFIXES["forbidden"], "count": 1}, "answer": {"status": 403, "reason": "InvalidProviderToken"}},
        {"match": {"token": PREFIXES["dead"]}, "answer": {"status": 410, "reason": "Unregistered"}},
        {"match": {"token": PREFIXES["freeze"]}, "fault": {"kind": "freeze"}},
        {"match": {"token": PREFIXES["goaway"], "count": 12}, "fault": {"kind": "goaway", "reason": "Shutdown"}},
        {
            "match": {"token": PREFIXES["error"], "count": 1500},
            "answer": {"status": 500, "reason": "InternalServerError"},
        },
        {"match": {"token": PREFIXES["topic"]}, "answer": {"status": 400, "reason": "BadTopic"}},
    ]
}


class Failed(Exception):
    """An alert did not do what it should, or the world did not come up."""


class World:
    """The servers, the traffic, and what Prometheus says."""

    def __init__(self, folder: Path, binary: Path) -> None:
        self.folder = folder
        self.binary = binary
        self.config = folder / "carillon.yaml"
        self.redis = RedisServer(folder)
        self.broker = Broker(folder, binary, 2)
        self.simulator = Simulator(folder, binary)
        self.worker = Worker("worker", folder, binary, self.config, {})
        self.many = Worker("many", folder, binary, folder / "many.yaml", {})
        self.prometheus_port = free_port()
        self.prometheus = Process("prometheus", folder, self._prometheus())
        self.seen: dict[str, tuple[str, set[str]]] = {}
        self._count = 0
        self.repeating = threading.Event()
        self._flows = threading.Event()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._traffic = threading.Thread(target=self._send_all, daemon=True, name="traffic")

    # Beginning and end.

    def open(self) -> None:
        self.redis.start()
        self.redis.await_ready()
        self.broker.open()
        self.simulator.open(SCENARIO)
        self.certificate(days=1)
        self._write_configurations()
        self.writer = Writer(self.broker.bootstrap)
        self.targets([self.worker])
        rules = self.folder / "rules.yaml"
        rules.write_text(yaml.safe_dump({"groups": groups(DRILL)}))
        self.prometheus.start()
        self.worker.open()
        self.await_that("the worker is ready", lambda: self.get(self.worker, "/readyz") is not None, 40)
        self.bind_all()
        self.await_that("the binds are settled", lambda: self.number("sum(carillon_pending_events)") == 0, 30)
        self._traffic.start()
        self._flows.set()
        self.await_that("pushes are accepted", lambda: (self.number("sum(carillon_decisions_total)") or 0) > 100, 40)

    def close(self) -> None:
        self._ended.set()
        for process in (self.prometheus, self.worker, self.many, self.simulator, self.redis, self.broker):
            process.kill()

    def _prometheus(self) -> list[str]:
        path = self.folder / "prometheus.yml"
        job = {"job_name": "carillon", "file_sd_configs": [{"files": [str(self.folder / "targets.json")]}]}
        settings = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(self.folder / "rules.yaml")],
            "scrape_configs": [job],
        }
        path.write_text(yaml.safe_dump(settings))
        command = ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={self.folder / 'tsdb'}"]
        return [*command, f"--web.listen-address=127.0.0.1:{self.prometheus_port}", "--log.level=warn"]

    def targets(self, workers: list[Worker]) -> None:
        fresh = self.folder / "targets.tmp"
        fresh.write_text(json.dumps([{"targets": [f"127.0.0.1:{worker.port}" for worker in workers]}]))
        fresh.rename(self.folder / "targets.json")

    # Configurations.

    def _write_configurations(self) -> None:
        self.config.write_text(yaml.safe_dump(self._configuration([self._app("im"), self._certificate_app()])))
        many = self._configuration([self._app(f"app{index:02d}") for index in range(30)])
        many["kafka"]["group"] = "many"
        many["kafka"]["topics"] = {"events": "many.events", "user_state": "many.state", "parked": "many.parked"}
        # Its metric is there where a waiver is in use.
        many["kafka"]["options"]["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        many["waivers"] = ["unsigned_jwt"]
        (self.folder / "many.yaml").write_text(yaml.safe_dump(many))

    def _configuration(self, apps: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "kafka": {
                "brokers": self.broker.bootstrap,
                "options": {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "fetch.wait.max.ms": 10},
            },
            "redis": {"url": f"redis://127.0.0.1:{self.redis.port}"},
            "apps": apps,
            "shards": 1,
            "window": {"records": 1000},
            "http": {"listen": "127.0.0.1:0"},
            "drain_s": 5,
        }

    def _app(self, name: str) -> dict[str, Any]:
        facts = self.simulator.facts
        return {
            "id": name,
            "topic": "com.example.im",
            "environment": "production",
            "endpoint": f"https://localhost:{self.simulator.port}",
            "ca_file": facts["ca_file"],
            "credentials": {key: facts[key] for key in ("key_file", "key_id", "team_id")},
            "profile": "raw",
            "limits": {
                "in_flight": 200,
                "answer_s": 5,
                "removals": {"window_s": 5, "minimum": 8, "share": 0.1, "cool_down_s": 6},
            },
        }

    def _certificate_app(self) -> dict[str, Any]:
        files = {"certificate_file": str(self.folder / "push.pem"), "key_file": str(self.folder / "push-key.pem")}
        return {**self._app("old"), "credentials": files}

    def certificate(self, days: int) -> None:
        """A new certificate of the second app; the key comes first, so that the pair is whole at the next look."""
        fresh = self.folder / "fresh"
        fresh.mkdir(exist_ok=True)
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(days), "-subj"]
        make += ["/UID=com.example.im/CN=Apple Push Services: com.example.im"]
        make += ["-keyout", str(fresh / "push-key.pem"), "-out", str(fresh / "push.pem")]
        subprocess.run(make, check=True, capture_output=True)
        for name in ("push-key.pem", "push.pem"):
            (fresh / name).chmod(0o600)
            (fresh / name).rename(self.folder / name)

    # Traffic.

    def bind_all(self) -> None:
        for uid, token in self._tokens():
            self.write("im.user-state", uid, bind(self._id("b"), now_ms(), uid, f"d-{uid}", token, now_ms()))
        self.flush()

    def _tokens(self) -> Iterator[tuple[str, str]]:
        for index in range(USERS):
            yield f"u{index}", f"{index:064x}"
        for fault, prefix in PREFIXES.items():
            for index in range(PER_FAULT):
                yield f"{fault}{index}", f"{prefix}{index:060x}"

    def write(self, topic: str, key: str, value: dict[str, Any] | None, raw: str = "") -> None:
        with self._lock:
            self.writer.write(Send(0, topic, key, value, raw))

    def flush(self) -> None:
        with self._lock:
            self.writer.poll(0)

    def _id(self, letter: str) -> str:
        with self._lock:
            self._count += 1
            return f"{letter}{self._count}"

    def push(self, uid: str, **fields: Any) -> None:  # noqa: ANN401
        name = self._id("m")
        value = {"v": 1, "kind": "message", "app": "im", "event_id": name, "msg_id": name, "sent_ms": now_ms()}
        value |= {"conv": {"id": f"c-{uid}", "type": "p2p"}, "from": {"uid": "sender"}, "to": {"uids": [uid]}}
        self.write(EVENTS, f"c-{uid}", value | {"push": {"content": "hello"}} | fields)

    def push_to(self, fault: str, count: int, first: int = 0) -> None:
        for index in range(first, first + count):
            self.push(f"{fault}{index}")
        self.flush()

    def _send_all(self) -> None:
        index = 0
        while not self._ended.wait(0.04):
            if self._flows.is_set():
                with contextlib.suppress(KafkaException):
                    self.push(f"u{index % USERS}")
                    self.flush()
                index += 1

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        self._flows.clear()
        try:
            yield
        finally:
            self._flows.set()

    # What is seen.

    def query(self, expr: str) -> list[dict[str, Any]]:
        url = f"http://127.0.0.1:{self.prometheus_port}/api/v1/query?" + urllib.parse.urlencode({"query": expr})
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return json.load(answer)["data"]["result"]
        except (OSError, urllib.error.URLError):
            return []

    def number(self, expr: str) -> float | None:
        found = self.query(expr)
        return float(found[0]["value"][1]) if found else None

    def firing(self) -> set[str]:
        """Alerts, with their window where there are several of a name."""
        found = [one["metric"] for one in self.query('ALERTS{alertstate="firing"}')]
        return {" ".join([one["alertname"], *([one["window"]] if "window" in one else [])]) for one in found}

    def get(self, worker: Worker, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}{path}", timeout=2) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def look(self) -> None:
        """Keeps what the worker exports now: some series begin with their first event."""
        for worker in (self.worker, self.many):
            text = self.get(worker, "/metrics") if worker.runs else None
            for name, (kind, labels) in parse_exposition(text or "").items():
                known = self.seen.setdefault(name, (kind, set()))
                known[1].update(labels)

    def await_that(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.25)
        raise Failed(f"{what}: not within {seconds:.0f} s\n{self.worker.tail(5)}")


class Step:
    """A fault and its end, and the alerts that it is to raise."""

    def __init__(self, name: str, alerts: list[str], fault: Callable[[World], None], end: Callable[[World], None]) -> None:
        self.name = name
        self.alerts = alerts
        self.fault = fault
        self.end = end


def nothing(_: World) -> None:
    """The fault ends by itself, or its windows move on."""


def repeat(world: World, every: float, seconds: float, act: Callable[[], None]) -> None:
    """In the background, for so long or until `repeating` is cleared."""
    world.repeating.set()

    def run() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and world.repeating.is_set():
            with contextlib.suppress(redis.RedisError, OSError):
                act()
            time.sleep(every)

    threading.Thread(target=run, daemon=True).start()


def refuse_credential(world: World) -> None:
    (world.folder / "push.pem").write_text("no certificate\n")


def refuse_reload(world: World) -> None:
    world.config.write_text("kafka: {}\n")
    world.worker.send(signal.SIGHUP)


def freeze_worker(world: World) -> None:
    """For less than its session: what comes meanwhile is late."""
    world.worker.pause()
    time.sleep(4.5)
    world.worker.resume()


def unavailable(world: World) -> None:
    world.simulator.kill()
    world.simulator.open({"rules": [{"answer": {"status": 503, "reason": "ServiceUnavailable"}}]})


def too_many(world: World) -> None:
    world.simulator.kill()
    world.simulator.open({"rules": [{"answer": {"status": 429, "reason": "TooManyRequests"}}]})


def available(world: World) -> None:
    world.simulator.kill()
    world.simulator.open(SCENARIO)


def flood(world: World) -> None:
    """More than goes out, to a worker that has a third of its time."""

    def slice_of_time() -> None:
        world.worker.pause()
        time.sleep(0.4)
        world.worker.resume()

    size, looked = 10, time.monotonic()

    def burst() -> None:
        nonlocal size, looked
        # No more than the machine needs to fall behind: it has to work it off again.
        if time.monotonic() - looked > 2:
            looked = time.monotonic()
            size = size if (world.number("max(carillon:lag_seconds)") or 0) > 1 else min(size * 2, USERS)
        for index in range(size):
            world.push(f"u{index}")
        world.flush()

    repeat(world, 0.2, 30, slice_of_time)
    repeat(world, 0.02, 30, burst)


def ebb(world: World) -> None:
    """What came meanwhile is to be worked off by a slow machine too."""
    world.repeating.clear()


def expired(world: World) -> None:
    for index in range(200):
        world.push(f"u{index % USERS}", expire_at_ms=now_ms() - 1000)


def stop_redis(world: World) -> None:
    world.redis.pause()


def slow_redis(world: World) -> None:
    client = world.redis.client()
    repeat(world, 0.05, 14, lambda: client.execute_command("CLIENT", "PAUSE", "250", "ALL"))


def full_redis(world: World) -> None:
    world.redis.client().config_set("maxmemory", 1)


def empty_redis(world: World) -> None:
    world.redis.client().flushall()


def older_redis(world: World) -> None:
    """As a restored snapshot has it: an earlier count of the heartbeat."""
    world.redis.client().hset("c:w:{h0}", "n", 1)


def accept_loss(world: World) -> None:
    command = [str(world.binary), "tokens", "accept", "--config", str(world.config)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"tokens accept: {done.stdout}{done.stderr}")
    world.bind_all()


def low_descriptors(world: World) -> None:
    used = int(world.number("max(process_open_fds)") or 0)
    limit_descriptors(world, int(used * 1.12))


def limit_descriptors(world: World, soft: int) -> None:
    child = world.worker.child
    if child is not None:
        hard = resource.prlimit(child.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (soft, hard))


def many_apps(world: World) -> None:
    world.many.err.symlink_to("/dev/full")
    world.many.open()
    world.targets([world.worker, world.many])


def few_apps(world: World) -> None:
    world.targets([world.worker])
    world.many.kill()


def storm(world: World) -> None:
    # REBALANCE_IN_PROGRESS: members give their partitions back and join anew.
    repeat(world, 1, 40, lambda: world.broker.order("error heartbeat 27 27"))


def refuse_commits(world: World) -> None:
    # GROUP_AUTHORIZATION_FAILED.
    repeat(world, 0.5, 15, lambda: world.broker.order("error commit 30 30 30 30"))


def refuse_records(world: World) -> None:
    # INVALID_RECORD; some of the traffic's own records meet it too.
    repeat(world, 0.3, 6, lambda: world.broker.order("error produce 87 87"))


def forget(kind: str) -> Callable[[World], None]:
    """Ends the broker's errors: those that are asked for now and those that nobody met yet."""

    def end(world: World) -> None:
        world.repeating.clear()
        time.sleep(1.5)
        world.broker.order(f"clear {kind}")

    return end


def kill_worker(world: World) -> None:
    """Meanwhile more is written than the broker keeps of a partition (5 MiB)."""
    world.worker.kill()
    pad = "x" * 900_000
    for _ in range(20):
        world.push("u1", pad=pad)
    world.flush()


def kill_broker(world: World) -> None:
    world._flows.clear()
    world.broker.kill()
    world.worker.kill()
    world.worker.open()


def new_broker(world: World) -> None:
    world.worker.kill()
    world.broker.out.unlink()
    world.broker.open()
    world._write_configurations()
    world.writer = Writer(world.broker.bootstrap)
    world.worker.open()


BURNS = ("1h", "6h", "3d")
STEPS = [
    # It is there from the beginning.
    Step(
        "a certificate ends tomorrow",
        ["CarillonCredentialExpiry", "CarillonCredentialExpiring"],
        nothing,
        lambda world: world.certificate(days=90),
    ),
    Step("half a configuration", ["CarillonReloadRefused"], refuse_reload, lambda world: world._write_configurations()),
    Step("half a certificate", ["CarillonCredentialRefused"], refuse_credential, lambda world: world.certificate(days=90)),
    Step(
        "APNs refuses the provider token",
        ["CarillonAuthRejected"],
        lambda world: world.push_to("forbidden", 1),
        nothing,
    ),
    Step("the worker makes no progress", [f"CarillonLatencyBurn {window}" for window in BURNS], freeze_worker, nothing),
    Step(
        "tokens die",
        ["CarillonMassInvalidation", "CarillonRemovalBrake"],
        lambda world: world.push_to("dead", 60),
        nothing,
    ),
    Step("a wrong topic", ["CarillonMisconfigured"], lambda world: world.push_to("topic", 3), nothing),
    Step("APNs says GOAWAY", ["CarillonGoawayStorm"], lambda world: world.push_to("goaway", 12), nothing),
    Step(
        "connections fall silent",
        ["CarillonDeadConnections", "CarillonAmbiguousHigh"],
        lambda world: world.push_to("freeze", 4),
        nothing,
    ),
    Step("APNs answers 500", ["CarillonRetryBudgetEmpty"], lambda world: world.push_to("error", 300), nothing),
    Step(
        "APNs is away",
        ["CarillonApnsUnreachable"],
        lambda world: world.simulator.kill(),
        lambda world: world.simulator.open(SCENARIO),
    ),
    Step("APNs answers 503", ["CarillonBreakerOpen"], unavailable, available),
    Step("APNs answers 429 to all", ["CarillonNothingAccepted"], too_many, available),
    Step("events come too late", [f"CarillonLossBurn {window}" for window in BURNS], expired, nothing),
    Step(
        "a bad record",
        ["CarillonDeadLetters"],
        lambda world: world.write(EVENTS, "x", None, "no json"),
        nothing,
    ),
    Step("Redis is slow", ["CarillonRedisDegraded"], slow_redis, nothing),
    Step(
        "Redis is full",
        ["CarillonRedisRefusesWrites"],
        full_redis,
        lambda world: world.redis.client().config_set("maxmemory", 0),
    ),
    Step(
        "Redis does not answer",
        ["CarillonRedisDown", "CarillonWatermarkStuck", *(f"CarillonAgeBurn {window}" for window in BURNS)],
        stop_redis,
        lambda world: world.redis.resume(),
    ),
    Step("more comes in than goes out", ["CarillonLagGrowing"], flood, ebb),
    Step("Redis has older data", ["CarillonRedisOlderData"], older_redis, nothing),
    Step("Redis lost its keys", ["CarillonTokenLoss"], empty_redis, accept_loss),
    Step(
        "few descriptors",
        ["CarillonDescriptorsLow"],
        low_descriptors,
        lambda world: limit_descriptors(world, 4096),
    ),
    # And its log goes to a full disk.
    Step("thirty apps", ["CarillonSeriesBudget", "CarillonLogLost"], many_apps, few_apps),
    Step("the group rebalances", ["CarillonRebalanceStorm"], storm, forget("heartbeat")),
    Step("commits are refused", ["CarillonCommitsFailing"], refuse_commits, forget("commit")),
    Step("records are refused", ["CarillonRecordsRefused"], refuse_records, forget("produce")),
    Step("the worker is gone", ["CarillonAbsent", "CarillonDown"], kill_worker, lambda world: world.worker.open()),
    # Of what was written while it was gone.
    Step("retention was faster", ["CarillonDataGap"], nothing, nothing),
    Step("Kafka is gone", ["CarillonNoAssignment"], kill_broker, new_broker),
]

# Alerts that no fault here can cause, and why. promtool tests their expressions.
WITHOUT_STEP = {
    "CarillonLoopStuck": "a stopped process answers no scrape; the simulation has a stuck loop",
    "CarillonNoStreams": "the simulator's scenario changes all connections of the world",
    "CarillonClockOff": "all processes share the machine's clock",
    "CarillonClockWrong": "all processes share the machine's clock",
    "CarillonPartitionRestarted": "the broker cannot create a topic again under a running group",
}


def play(world: World, step: Step, say: Callable[[str], None]) -> None:
    begun = time.monotonic()
    world.look()
    step.fault(world)
    wanted = set(step.alerts)
    fired: set[str] = set()

    def fires() -> bool:
        fired.update(wanted & world.firing())
        world.look()
        return fired == wanted

    try:
        world.await_that(f"{step.name}: {', '.join(step.alerts)} fire", fires, 60)
    except Failed as failed:
        raise Failed(f"{failed}\nnot fired: {sorted(wanted - fired)}") from None
    finally:
        step.end(world)
    after = time.monotonic()
    # A refused credential is tried again after a minute.
    world.await_that(f"{step.name}: {', '.join(step.alerts)} end", lambda: not wanted & world.firing(), 100)
    names = ", ".join(sorted({alert.split()[0] for alert in step.alerts}))
    say(f"{step.name:34} {names}: fired after {after - begun:.0f} s, ended {time.monotonic() - after:.0f} s later")


def check_exported(world: World, record: bool) -> list[str]:
    """What rules and dashboard may use is what the worker exported in this run."""
    if record:
        lines = [" ".join([name, kind, *sorted(labels)]) for name, (kind, labels) in sorted(world.seen.items())]
        EXPORTED.write_text("".join(line + "\n" for line in lines))
        return []
    seen = set(world.seen)
    listed = {line.split()[0] for line in EXPORTED.read_text().splitlines()}
    faults = [f"metrics.txt has {name}, which the worker did not export" for name in sorted(listed - seen)]
    faults += [f"metrics.txt lacks {name}: run with --record" for name in sorted(seen - listed)]
    known = read_exported(EXPORTED)
    for name, (kind, labels) in sorted(world.seen.items()):
        have = known.get(name + "_count" if kind == "histogram" else name)
        if have is not None and have != labels:
            faults.append(f"metrics.txt has other labels of {name}: {sorted(labels)}")
    return faults


def run(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    missing = {rule["alert"] for group in groups(PRODUCTION) for rule in group["rules"] if "alert" in rule}
    missing -= {alert.split()[0] for step in STEPS for alert in step.alerts}
    missing -= WITHOUT_STEP.keys()
    if missing:
        raise Failed(f"no step raises {sorted(missing)}")
    world = World(folder, arguments.binary.resolve())
    only = set(arguments.only.split(",")) if arguments.only else set()
    steps = [step for step in STEPS if not only or only & {alert.split()[0] for alert in step.alerts}]
    failures: list[str] = []
    try:
        world.open()
        for step in steps:
            try:
                play(world, step, lambda text: print(text, flush=True))
            except Failed as failed:
                failures.append(str(failed))
                print(f"FAILED {failed}", flush=True)
        world.look()
        if not only and not failures:
            failures += check_exported(world, arguments.record)
    finally:
        world.close()
    for failure in failures:
        print(f"FAILED {failure.splitlines()[0]}")
    alerts = sum(len(step.alerts) for step in steps)
    print(f"{len(steps)} faults, {alerts} alerts, {len(failures)} failed; files in {folder}")
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes every alert fire and end.")
    parser.add_argument("--binary", type=Path, default=TOP / ".build/debug/carillon")
    parser.add_argument("--folder", type=Path, default=TOP / ".build/drill", help="of logs and data; emptied first")
    parser.add_argument("--only", default="", metavar="ALERT,…")
    parser.add_argument("--record", action="store_true", help="write metrics.txt anew")
    try:
        return run(parser.parse_args())
    except Failed as failed:
        print(f"FAILED {failed}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
