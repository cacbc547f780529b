# SPDX-License-Identifier: Apache-2.0
"""What is done to the system, and when: a list of actions drawn from the seed and the kind of fault.

Times are seconds since the traffic began. An action on APNs that lasts is a rule of the simulator's scenario.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Action:
    at_s: float
    verb: str
    target: str = ""
    # Of an APNs rule: its end and what it does.
    until_s: float = 0.0
    rule: dict[str, Any] = field(default_factory=dict)
    # A start takes this version's binary (`BASE`, `THIS`); empty: the worker keeps its binary.
    version: str = ""

    def __str__(self) -> str:
        text = f"{self.at_s:6.2f} s  {self.verb}"
        if self.target:
            text += f" {self.target}"
        if self.version:
            text += f" by the binary of {self.version}"
        if self.rule:
            text += f" until {self.until_s:.2f} s: {self.rule}"
        return text


@dataclass(frozen=True)
class Shape:
    """The proportions of a run."""

    seconds: float = 40.0
    # Longer than this without a heartbeat, and the group gives a member's partitions away.
    session_s: float = 6.0
    workers: tuple[str, ...] = ("w1", "w2", "w3")

    @property
    def joiners(self) -> tuple[str, str]:
        """Two workers who are not there at the start."""
        return f"w{len(self.workers) + 1}", f"w{len(self.workers) + 2}"

    @property
    def big_times(self) -> tuple[float, ...]:
        """When the large group gets its messages."""
        return tuple(self.seconds * share for share in (0.22, 0.5, 0.75))


Maker = Callable[[random.Random, Shape], list[Action]]

# The binaries of a run with two versions: an earlier commit's, and this tree's.
BASE = "base"
THIS = "this"


def _at(rng: random.Random, shape: Shape, low: float = 0.2, high: float = 0.45) -> float:
    return round(rng.uniform(low, high) * shape.seconds, 2)


def _worker(rng: random.Random, shape: Shape) -> str:
    return rng.choice(shape.workers)


def none(rng: random.Random, shape: Shape) -> list[Action]:
    return []


def kill(rng: random.Random, shape: Shape) -> list[Action]:
    worker, at = _worker(rng, shape), _at(rng, shape)
    return [Action(at, "kill", worker), Action(at + rng.uniform(1, 4), "start", worker)]


def stop(rng: random.Random, shape: Shape) -> list[Action]:
    worker, at = _worker(rng, shape), _at(rng, shape, 0.15, 0.3)
    return [Action(at, "pause", worker), Action(at + shape.session_s + rng.uniform(3, 5), "resume", worker)]


def rolling(rng: random.Random, shape: Shape) -> list[Action]:
    return _replaced(shape, _at(rng, shape, 0.05, 0.15), shape.seconds * 0.28)


def rolling_fast(rng: random.Random, shape: Shape) -> list[Action]:
    """The next worker ends two seconds after the one before has started: the group still moves."""
    return _replaced(shape, _at(rng, shape, 0.05, 0.3), 3.0)


def _replaced(shape: Shape, at: float, every_s: float, verb: str = "term", version: str = "") -> list[Action]:
    """One worker after the other."""
    actions: list[Action] = []
    for worker in shape.workers:
        actions += [Action(at, verb, worker), Action(at + 1.0, "start", worker, version=version)]
        at += every_s
    return actions


def join(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape)
    first, second = shape.joiners
    return [Action(at, "start", first), Action(at + rng.uniform(0, 2), "start", second)]


def leave(rng: random.Random, shape: Shape) -> list[Action]:
    return [Action(_at(rng, shape), "term", _worker(rng, shape))]


def redis_kill(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape)
    return [Action(at, "redis-kill"), Action(at + rng.uniform(0.5, 4), "redis-start")]


def redis_stop(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape)
    return [Action(at, "redis-pause"), Action(at + rng.uniform(2, 6), "redis-resume")]


def redis_cut(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape)
    return [Action(at + index * rng.uniform(0.2, 0.8), "redis-cut") for index in range(6)]


def redis_full(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape, 0.2, 0.3)
    return [Action(at, "redis-full"), Action(at + shape.seconds * 0.25, "redis-room")]


def redis_readonly(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape, 0.2, 0.35)
    end = at + shape.seconds * 0.2
    if rng.random() < 0.5:
        return [Action(at, "redis-replica"), Action(end, "redis-master")]
    return [Action(at, "redis-lonely"), Action(end, "redis-enough")]


def redis_scan(rng: random.Random, shape: Shape) -> list[Action]:
    """Redis restarts while a large group is read, each time with another hash seed."""
    actions: list[Action] = []
    for big in shape.big_times[:2]:
        at = big + rng.uniform(0.1, 0.5)
        actions += [Action(at, "redis-kill"), Action(at + 0.2, "redis-start")]
    return actions


def broker_down(rng: random.Random, shape: Shape) -> list[Action]:
    """For less than a session: librdkafka's mock aborts when a member joins anew whose joining it has not answered."""
    at = _at(rng, shape)
    return [Action(at, "broker-down"), Action(at + rng.uniform(0.3, 0.65) * shape.session_s, "broker-up")]


def broker_cut(rng: random.Random, shape: Shape) -> list[Action]:
    actions: list[Action] = []
    for index in range(3):
        at = _at(rng, shape) + index * 2
        actions += [Action(at, "broker-down"), Action(at + 0.2, "broker-up")]
    return actions


def apns_kill(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape)
    return [Action(at, "apns-kill"), Action(at + rng.uniform(0.3, 1.5), "apns-start")]


def apns_away(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape, 0.15, 0.25)
    return [Action(at, "apns-kill"), Action(at + shape.seconds / 2, "apns-start")]


def _window(
    rng: random.Random, shape: Shape, length: float, rule: dict[str, Any], match: dict[str, Any] | None = None
) -> list[Action]:
    at = _at(rng, shape, 0.15, 0.25)
    return [Action(at, "apns-rule", until_s=at + length * shape.seconds, rule={"match": match or {}, **rule})]


def apns_503(rng: random.Random, shape: Shape) -> list[Action]:
    answer = {"status": 503, "reason": "ServiceUnavailable"}
    return _window(rng, shape, 0.35, {"answer": answer})


def apns_429(rng: random.Random, shape: Shape) -> list[Action]:
    answer = {"status": 429, "reason": "TooManyRequests"}
    return _window(rng, shape, 0.4, {"answer": answer}, {"share": 0.4})


def apns_goaway(rng: random.Random, shape: Shape) -> list[Action]:
    last = rng.choice(["none", "before", "before", "this"])
    fault = {"kind": "goaway", "last": last, "twice": rng.random() < 0.5}
    return _window(rng, shape, 0.4, {"fault": fault}, {"every": rng.choice([5, 20, 50])})


def apns_silent(rng: random.Random, shape: Shape) -> list[Action]:
    fault = {"kind": "freeze", "scope": rng.choice(["connection", "stream"])}
    return _window(rng, shape, 0.2, {"fault": fault}, {"every": rng.choice([3, 10, 30])})


def full_kill(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape, 0.15, 0.2)
    worker = _worker(rng, shape)
    return [
        Action(at, "redis-full"),
        Action(at + shape.seconds * 0.25, "kill", worker),
        Action(at + shape.seconds * 0.25 + 1, "start", worker),
        Action(at + shape.seconds * 0.3, "redis-room"),
    ]


def full_rolling(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape, 0.1, 0.15)
    actions = [Action(at, "redis-full"), Action(at + shape.seconds * 0.6, "redis-room")]
    return actions + [Action(action.at_s + 2, action.verb, action.target) for action in rolling(rng, shape)]


def unavailable_join(rng: random.Random, shape: Shape) -> list[Action]:
    rule = apns_503(rng, shape)
    at = rule[0].at_s + shape.seconds * 0.1
    first, second = shape.joiners
    return [*rule, Action(at, "start", first), Action(at + 1, "start", second)]


def away_rolling(rng: random.Random, shape: Shape) -> list[Action]:
    return apns_away(rng, shape) + rolling(rng, shape)


def silent_kill(rng: random.Random, shape: Shape) -> list[Action]:
    return apns_silent(rng, shape) + kill(rng, shape)


def stall_kill(rng: random.Random, shape: Shape) -> list[Action]:
    stall = redis_stop(rng, shape)
    at = (stall[0].at_s + stall[1].at_s) / 2
    worker = _worker(rng, shape)
    return [*stall, Action(at, "kill", worker), Action(at + 2, "start", worker)]


def scan_join(rng: random.Random, shape: Shape) -> list[Action]:
    """The group moves while a large group is read and claimed."""
    return [Action(shape.big_times[0] + rng.uniform(-3, 0.3), "start", shape.joiners[0]), *redis_scan(rng, shape)[2:]]


def broker_kill(rng: random.Random, shape: Shape) -> list[Action]:
    down = broker_down(rng, shape)
    worker, at = _worker(rng, shape), down[0].at_s + 0.5
    return [*down, Action(at, "kill", worker), Action(at + rng.uniform(4, 6), "start", worker)]


def unwritten_kill(rng: random.Random, shape: Shape) -> list[Action]:
    """A worker dies with outcomes that it could not write: APNs is back while the broker is away."""
    rule = apns_503(rng, shape)
    back, worker = rule[0].until_s, _worker(rng, shape)
    return [
        *rule,
        Action(back - 0.5, "broker-down"),
        Action(back + 0.25 * shape.session_s, "kill", worker),
        Action(back + 0.45 * shape.session_s, "broker-up"),
        Action(back + shape.session_s, "start", worker),
    ]


def unavailable_kill_all(rng: random.Random, shape: Shape) -> list[Action]:
    """All workers die at once with pushes that wait for APNs."""
    at = _at(rng, shape, 0.36, 0.52)
    start = at + rng.uniform(0.5, 3)
    kills = [Action(at, "kill", worker) for worker in shape.workers]
    return [*apns_503(rng, shape), *kills, *(Action(start, "start", worker) for worker in shape.workers)]


def stop_503(rng: random.Random, shape: Shape) -> list[Action]:
    return apns_503(rng, shape) + stop(rng, shape)


def kafka_move(rng: random.Random, shape: Shape) -> list[Action]:
    """As docs/operations.md tells it; the workers end by SIGTERM or by kill -9, some of them amid a large group."""
    mirror = _at(rng, shape, 0.25, 0.29)
    end = rng.choice([_at(rng, shape, 0.36, 0.45), shape.big_times[1] + rng.uniform(0.05, 0.8)])
    verb = rng.choice(["term", "kill"])
    start = end + rng.uniform(0.5, 3)
    return [
        Action(mirror, "kafka-mirror"),
        *(Action(end, verb, worker) for worker in shape.workers),
        Action(start, "await"),
        Action(start, "kafka-move"),
        *(Action(start, "start", worker) for worker in shape.workers),
        Action(start + rng.uniform(0.5, 6), "kafka-point"),
    ]


def unavailable_kafka_move(rng: random.Random, shape: Shape) -> list[Action]:
    """Pushes that wait for APNs move too."""
    return kafka_move(rng, shape) + apns_503(rng, shape)


def kafka_move_backup(rng: random.Random, shape: Shape) -> list[Action]:
    """Redis is lost too: it starts from a backup some seconds old, before the workers do."""
    actions = kafka_move(rng, shape)
    backup = Action(_at(rng, shape, 0.3, 0.34), "redis-backup")
    where = next(index for index, action in enumerate(actions) if action.verb == "kafka-move")
    return [*actions[:where], Action(actions[where].at_s, "redis-restore"), *actions[where:], backup]


def kafka_move_late_backup(rng: random.Random, shape: Shape) -> list[Action]:
    """Redis is lost after the move, and starts from a backup from before it: its places are of the first cluster."""
    backup, restore = _at(rng, shape, 0.3, 0.34), _at(rng, shape, 0.85, 0.95)
    return [*kafka_move(rng, shape), Action(backup, "redis-backup"), Action(restore, "redis-restore")]


def upgrade(rng: random.Random, shape: Shape, verb: str = "term", version: str = THIS) -> list[Action]:
    return _replaced(shape, _at(rng, shape, 0.15, 0.25), shape.seconds * 0.2, verb, version)


def upgrade_kill(rng: random.Random, shape: Shape) -> list[Action]:
    return upgrade(rng, shape, "kill")


def unavailable_upgrade(rng: random.Random, shape: Shape) -> list[Action]:
    """Both versions park while they run side by side, and each reads what the other one has parked."""
    return apns_503(rng, shape) + upgrade(rng, shape)


def unavailable_upgrade_all(rng: random.Random, shape: Shape) -> list[Action]:
    """All end with pushes that wait for APNs, before the first one starts with the other binary."""
    at = _at(rng, shape, 0.36, 0.45)
    ends = [Action(at, "term", worker) for worker in shape.workers]
    starts = [Action(at + 1.0, "start", worker, version=THIS) for worker in shape.workers]
    return [*apns_503(rng, shape), *ends, *starts]


def mixed(rng: random.Random, shape: Shape) -> list[Action]:
    """Side by side all the time; restarts without a change of the version give each one's partitions to the other."""
    actions: list[Action] = []
    for number, verb in enumerate(("term", "kill", "term", "kill")):
        at = (0.12 + 0.2 * number + rng.uniform(0, 0.06)) * shape.seconds
        worker = shape.workers[number % len(shape.workers)]
        actions += [Action(at, verb, worker), Action(at + 1.0, "start", worker)]
    return actions


def unavailable_mixed(rng: random.Random, shape: Shape) -> list[Action]:
    return apns_503(rng, shape) + mixed(rng, shape)


def downgrade(rng: random.Random, shape: Shape, verb: str = "term") -> list[Action]:
    """Work is parked, and all of it has ended before the first worker goes back."""
    rule = {"match": {}, "answer": {"status": 503, "reason": "ServiceUnavailable"}}
    end = shape.seconds * 0.2
    parked = Action(shape.seconds * 0.05, "apns-rule", until_s=end, rule=rule)
    return [parked, Action(end, "drain"), *_replaced(shape, _at(rng, shape, 0.4, 0.45), end, verb, BASE)]


def downgrade_kill(rng: random.Random, shape: Shape) -> list[Action]:
    return downgrade(rng, shape, "kill")


def unavailable_downgrade(rng: random.Random, shape: Shape) -> list[Action]:
    """Without waiting for what is parked."""
    return apns_503(rng, shape) + upgrade(rng, shape, version=BASE)


def cluster_kill(rng: random.Random, shape: Shape) -> list[Action]:
    """A master dies, its replica takes over after the node timeout, and it comes back as that one's replica."""
    at, shard = _at(rng, shape), _shard(rng)
    return [Action(at, "cluster-kill", shard), Action(at + rng.uniform(6, 10), "cluster-start", shard)]


def cluster_failover(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape, 0.15, 0.25)
    shards = rng.sample(SHARDS, 3)
    return [Action(at + index * rng.uniform(4, 6), "cluster-failover", shard) for index, shard in enumerate(shards)]


def cluster_reshard(rng: random.Random, shape: Shape) -> list[Action]:
    """Some hundred slots go to another master, and back."""
    at = _at(rng, shape, 0.15, 0.25)
    giver, taker = rng.sample(SHARDS, 2)
    back = at + rng.uniform(9, 13)
    return [Action(at, "cluster-move", f"{giver}>{taker}"), Action(back, "cluster-move", f"{taker}>{giver}")]


def cluster_slow(rng: random.Random, shape: Shape) -> list[Action]:
    """Masters stop for less than the node timeout."""
    actions: list[Action] = []
    at = _at(rng, shape, 0.15, 0.25)
    for shard in rng.sample(SHARDS, 3):
        actions += [Action(at, "cluster-pause", shard), Action(at + rng.uniform(1.0, 1.8), "cluster-resume", shard)]
        at += rng.uniform(5, 7)
    return actions


def cluster_stop(rng: random.Random, shape: Shape) -> list[Action]:
    """A master stops beyond the node timeout, and goes on as if it still were one."""
    at, shard = _at(rng, shape), _shard(rng)
    return [Action(at, "cluster-pause", shard), Action(at + rng.uniform(6, 9), "cluster-resume", shard)]


def sentinel_kill(rng: random.Random, shape: Shape) -> list[Action]:
    at = _at(rng, shape)
    return [Action(at, "sentinel-kill"), Action(at + rng.uniform(6, 10), "sentinel-start")]


def sentinel_failover(rng: random.Random, shape: Shape) -> list[Action]:
    return [Action(_at(rng, shape), "sentinel-failover")]


def sentinel_handover(rng: random.Random, shape: Shape) -> list[Action]:
    """As docs/operations.md advises: the master wants all its replicas before it takes a write."""
    at = _at(rng, shape)
    return [
        Action(at, "sentinel-guard"),
        Action(at + 0.5, "sentinel-failover"),
        Action(at + rng.uniform(8, 12), "sentinel-unguard"),
    ]


def sentinel_stop(rng: random.Random, shape: Shape) -> list[Action]:
    """The master stops, another one is named, and it goes on as if it still were one."""
    at = _at(rng, shape)
    return [Action(at, "sentinel-pause"), Action(at + rng.uniform(5, 9), "sentinel-resume")]


def cluster_kill_kill(rng: random.Random, shape: Shape) -> list[Action]:
    return _with_worker(rng, shape, cluster_kill(rng, shape), 1, 4)


def reshard_kill(rng: random.Random, shape: Shape) -> list[Action]:
    return _with_worker(rng, shape, cluster_reshard(rng, shape), 0.3, 3)


def sentinel_kill_kill(rng: random.Random, shape: Shape) -> list[Action]:
    return _with_worker(rng, shape, sentinel_kill(rng, shape), 1, 4)


def _shard(rng: random.Random) -> str:
    return rng.choice(SHARDS)


def _with_worker(rng: random.Random, shape: Shape, actions: list[Action], low: float, high: float) -> list[Action]:
    """A worker dies soon after the first of the actions."""
    at, worker = actions[0].at_s + rng.uniform(low, high), _worker(rng, shape)
    return [*actions, Action(at, "kill", worker), Action(at + rng.uniform(1, 3), "start", worker)]


# Of a Cluster.
SHARDS = ("1", "2", "3")

FAULTS: dict[str, Maker] = {
    "none": none,
    "single": none,
    "desktop": none,
    "pressure": none,
    "kill": kill,
    "stop": stop,
    "rolling": rolling,
    "join": join,
    "leave": leave,
    "redis-kill": redis_kill,
    "redis-stop": redis_stop,
    "redis-cut": redis_cut,
    "redis-full": redis_full,
    "redis-readonly": redis_readonly,
    "redis-scan": redis_scan,
    "broker-down": broker_down,
    "broker-cut": broker_cut,
    "apns-kill": apns_kill,
    "apns-away": apns_away,
    "apns-503": apns_503,
    "apns-429": apns_429,
    "apns-goaway": apns_goaway,
    "apns-silent": apns_silent,
    "full+kill": full_kill,
    "full+rolling": full_rolling,
    "503+join": unavailable_join,
    "503+stop": stop_503,
    "503+broker+kill": unwritten_kill,
    "away+rolling": away_rolling,
    "silent+kill": silent_kill,
    "stall+kill": stall_kill,
    "scan+join": scan_join,
    "broker+kill": broker_kill,
    "rolling-fast": rolling_fast,
    "503+kill-all": unavailable_kill_all,
    "kafka-move": kafka_move,
    "503+kafka-move": unavailable_kafka_move,
}

# Of one server.
SINGLE_FAULTS: dict[str, Maker] = {
    "kafka-move+backup": kafka_move_backup,
    "kafka-move+late-backup": kafka_move_late_backup,
}

CLUSTER_FAULTS: dict[str, Maker] = {
    "cluster-kill": cluster_kill,
    "cluster-failover": cluster_failover,
    "cluster-reshard": cluster_reshard,
    "cluster-slow": cluster_slow,
    "cluster-stop": cluster_stop,
    "cluster-kill+kill": cluster_kill_kill,
    "cluster-reshard+kill": reshard_kill,
}

SENTINEL_FAULTS: dict[str, Maker] = {
    "sentinel-kill": sentinel_kill,
    "sentinel-failover": sentinel_failover,
    "sentinel-handover": sentinel_handover,
    "sentinel-stop": sentinel_stop,
    "sentinel-kill+kill": sentinel_kill_kill,
}

# Of two binaries.
VERSION_FAULTS: dict[str, Maker] = {
    "upgrade": upgrade,
    "upgrade-kill": upgrade_kill,
    "503+upgrade": unavailable_upgrade,
    "503+upgrade-all": unavailable_upgrade_all,
    "mixed": mixed,
    "503+mixed": unavailable_mixed,
    "downgrade": downgrade,
    "downgrade-kill": downgrade_kill,
    "503+downgrade": unavailable_downgrade,
}

ALL_FAULTS = FAULTS | SINGLE_FAULTS | CLUSTER_FAULTS | SENTINEL_FAULTS | VERSION_FAULTS


def kinds_of(redis: str, has_base: bool = False) -> list[str]:
    """What can be played on such a Redis, a group's own kinds first; with two binaries, the kinds of two versions."""
    if has_base:
        return list(VERSION_FAULTS)
    own = {"cluster": CLUSTER_FAULTS, "sentinel": SENTINEL_FAULTS}.get(redis, {})
    return [*own, *FAULTS] if own else [*FAULTS, *SINGLE_FAULTS]


def make(fault: str, seed: int, shape: Shape) -> list[Action]:
    """The schedule of one run; the same seed and kind give the same list."""
    rng = random.Random(f"{fault}/{seed}")
    return sorted(ALL_FAULTS[fault](rng, shape), key=lambda action: action.at_s)


def fault_of(seed: int, kinds: Sequence[str]) -> str:
    """The kind that a seed plays: all that are asked for in turn."""
    return kinds[(seed - 1) % len(kinds)]


def broker_of(fault: str) -> str:
    """Where a kind is played unless told otherwise: a rollout is not judged by the embedded broker's rebalances."""
    return "tansu" if "rolling" in fault or fault in VERSION_FAULTS else "embedded"


def of_base(fault: str, workers: tuple[str, ...]) -> tuple[str, ...]:
    """Who begins with the earlier binary."""
    if "mixed" in fault:
        return workers[::2]
    return workers if "upgrade" in fault else ()
