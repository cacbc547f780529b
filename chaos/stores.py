# SPDX-License-Identifier: Apache-2.0
"""The Redis of a run: one server, a Cluster of six, or servers that Sentinels watch.

All of them know the orders `redis-…`, which fall on every server at once; a Cluster and Sentinels have more of them.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import redis
from redis.cluster import ClusterNode
from redis.cluster import RedisCluster as ClusterClient

from chaos.replication import SLOTS, Watch, slots_of
from chaos.servers import CLIENT, Process, RedisServer, SetupFault, await_answer, connect

KINDS = ("single", "cluster", "sentinel")
# What a client may meet while a Redis is in trouble.
TROUBLE = (redis.RedisError, redis.RedisClusterException)
# More copies than any server here has.
LONELY = "9"
PATIENCE_S = 60.0

# Orders that fall on every server; a cure must not be lost in the fault it cures.
COMMANDS: dict[str, tuple[str, ...]] = {
    "cut": ("CLIENT", "KILL", "TYPE", "normal"),
    "full": ("CONFIG", "SET", "maxmemory", "1"),
    "room": ("CONFIG", "SET", "maxmemory", "0"),
    "replica": ("REPLICAOF", "127.0.0.1", "1"),
    "master": ("REPLICAOF", "NO", "ONE"),
    "lonely": ("CONFIG", "SET", "min-replicas-to-write", LONELY),
    "enough": ("CONFIG", "SET", "min-replicas-to-write", "0"),
}
# A server of a group that becomes nobody's replica would be put right by the others: it lacks replicas instead.
GROUPED = COMMANDS | {"replica": COMMANDS["lonely"], "master": COMMANDS["enough"]}


class Store(Protocol):
    kind: str
    watch: Watch

    def open(self) -> None: ...

    def perform(self, order: str, target: str) -> None: ...

    def heal(self) -> None: ...

    def close(self) -> None: ...

    def client(self) -> Any:  # noqa: ANN401
        """For one thread, and for a few commands: whoever needs one later asks for another."""

    @property
    def place(self) -> str:
        """The line of the workers' configuration, in its section `redis`."""


def make(kind: str, folder: Path, busy_slots: Iterable[int] = ()) -> Store:
    if kind == "cluster":
        return Cluster(folder, busy_slots)
    return Sentinels(folder) if kind == "sentinel" else Single(folder)


def lasting_port() -> int:
    """A free port that no outgoing connection is given: a server that is away for a while finds it free again."""
    for _ in range(200):
        port = random.SystemRandom().randint(15_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise SetupFault("no free port")


def insist(client: redis.Redis, command: tuple[str, ...]) -> None:
    for attempt in range(20):
        try:
            client.execute_command(*command)
            return
        except redis.RedisError:
            if attempt == 19:
                raise
            time.sleep(0.1)


def until(why: str, is_so: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if is_so():
                return
        except TROUBLE:
            pass
        time.sleep(0.05)
    raise SetupFault(why)


class Node(Process):
    """A redis-server with a configuration file, which Sentinels and the cluster may write to."""

    def __init__(self, name: str, folder: Path, lines: list[str]) -> None:
        self.port = lasting_port()
        place = folder / name
        place.mkdir()
        file = place / "redis.conf"
        own = [f"port {self.port}", "bind 127.0.0.1", f"dir {place}", "daemonize no"]
        # As `RedisServer`: what it has acknowledged outlives its process.
        own += ['save ""', "appendonly yes", "appendfsync no", "repl-diskless-sync-delay 0"]
        file.write_text("\n".join([*own, *lines]) + "\n")
        super().__init__(name, folder, ["redis-server", str(file)])

    def client(self) -> redis.Redis:
        return connect(self.port)

    def info(self, section: str = "replication") -> dict[str, Any]:
        return self.client().info(section)

    @property
    def is_master(self) -> bool:
        return self.runs and self.info().get("role") == "master"

    @property
    def is_in_step(self) -> bool:
        """A replica that follows its master."""
        told = self.info()
        return told.get("role") == "slave" and told.get("master_link_status") == "up"


class Single:
    kind = "single"

    def __init__(self, folder: Path) -> None:
        self.server = RedisServer(folder)
        self.watch = Watch({})

    @property
    def place(self) -> str:
        return self.server.place

    def open(self) -> None:
        self.server.start()
        self.server.await_ready()

    def client(self) -> redis.Redis:
        return self.server.client()

    def perform(self, order: str, target: str) -> None:
        if order == "kill":
            self.server.kill()
        elif order == "start":
            self.open()
        elif order == "pause":
            self.server.pause()
        elif order == "resume":
            self.server.resume()
        elif order == "backup":
            self.server.back_up()
        elif order == "restore":
            self.server.restore()
        else:
            insist(self.client(), COMMANDS[order])

    def heal(self) -> None:
        self.server.resume()
        if not self.server.runs:
            self.server.start()
        self.server.await_ready()

    def close(self) -> None:
        self.server.kill()


class Group:
    """Several servers with copies of each other; whoever watches them may change who is whose."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.watch = Watch({node.name: node.port for node in nodes})

    def perform(self, order: str, target: str) -> None:
        """An order `redis-…`."""
        if order in ("kill", "start", "pause", "resume"):
            for node in self.nodes.values():
                self.harm(node, order)
            return
        for node in self.nodes.values():
            if node.runs:
                insist(node.client(), GROUPED[order])

    def harm(self, node: Node, order: str) -> None:
        """Each is written down beside what the server tells of itself: then it could not write, or no more."""
        if order == "kill":
            self.watch.look(node.name)
            node.kill()
            self.watch.note(node.name, "gone")
        elif order == "pause":
            node.pause()
            self.watch.note(node.name, "paused")
        elif order == "resume":
            if node.paused:
                self.watch.note(node.name, "resumed")
            node.resume()
        elif not node.runs:
            node.start()
            await_answer(node.name, node.client)

    def mend(self) -> None:
        for node in self.nodes.values():
            self.harm(node, "resume")
            self.harm(node, "start")

    def close(self) -> None:
        self.watch.end()
        for node in self.nodes.values():
            node.kill()


class Cluster(Group):
    """Three masters with a third of the slots each, and a replica of each. Shard 2 is `r2` and `r5`, whoever leads."""

    kind = "cluster"
    SHARDS = 3
    TIMEOUT_MS = 3000
    # Slots that move together, and how long they are on their way.
    BATCH = 25
    LINGER_S = 0.15
    MOVED_SLOTS = 300

    def __init__(self, folder: Path, busy_slots: Iterable[int] = ()) -> None:
        self._busy = sorted(set(busy_slots))
        self._moved: list[int] = []
        self._client: ClusterClient | None = None
        nodes = []
        self._bus: list[int] = []
        for index in range(2 * self.SHARDS):
            bus = lasting_port()
            self._bus.append(bus)
            lines = ["cluster-enabled yes", f"cluster-port {bus}", f"cluster-node-timeout {self.TIMEOUT_MS}"]
            nodes.append(Node(f"r{index + 1}", folder, [*lines, "cluster-allow-replica-migration no"]))
        super().__init__(nodes)

    @property
    def place(self) -> str:
        urls = [f"redis://127.0.0.1:{node.port}" for node in list(self.nodes.values())[:2]]
        return f"url: [{', '.join(urls)}]"

    def client(self) -> ClusterClient:
        """It learns where keys are from the answers."""
        if self._client is None:
            known = [ClusterNode("127.0.0.1", node.port) for node in self.nodes.values()]
            self._client = ClusterClient(startup_nodes=known, **CLIENT)
        return self._client

    def open(self) -> None:
        nodes = list(self.nodes.values())
        for node in nodes:
            node.start()
        for node in nodes:
            await_answer(node.name, node.client)
        first = nodes[0].client()
        for index, node in enumerate(nodes):
            node.client().execute_command("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
            if index:
                first.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, self._bus[index])
        for index in range(self.SHARDS):
            low, high = SLOTS * index // self.SHARDS, SLOTS * (index + 1) // self.SHARDS - 1
            nodes[index].client().execute_command("CLUSTER", "ADDSLOTSRANGE", low, high)
        until("the nodes did not become a cluster", self._is_whole)
        for index in range(self.SHARDS):
            copy = nodes[index + self.SHARDS].client()
            copy.execute_command("CLUSTER", "REPLICATE", self._id(nodes[index]))
        self._await_copies()
        self.watch.start()

    def _is_whole(self) -> bool:
        for node in self.nodes.values():
            told = node.client().execute_command("CLUSTER", "INFO").split()
            if not {"cluster_state:ok", f"cluster_known_nodes:{len(self.nodes)}"} <= set(told):
                return False
        return True

    def _await_copies(self) -> None:
        def is_so() -> bool:
            return sum(node.is_in_step for node in self.nodes.values()) == self.SHARDS and self._is_whole()

        until("not every master of the cluster has its replica", is_so)

    def _id(self, node: Node) -> str:
        return node.client().execute_command("CLUSTER", "MYID")

    def shard(self, number: str) -> tuple[Node, Node]:
        """Its master and its replica, as they are now."""
        pair = [self.nodes[f"r{int(number)}"], self.nodes[f"r{int(number) + self.SHARDS}"]]
        masters = [node for node in pair if node.is_master]
        if len(masters) != 1:
            raise SetupFault(f"shard {number} has {len(masters)} masters")
        return masters[0], next(node for node in pair if node is not masters[0])

    def own(self, order: str, target: str) -> None:
        """An order `cluster-…`. `kill` and `pause` fall on a shard's master, `start` and `resume` on who needs it."""
        if order == "failover":
            return self._hand_over(target)
        if order == "move":
            return self._move(*target.split(">"))
        if order in ("kill", "pause"):
            return self.harm(self.shard(target)[0], order)
        for node in (self.nodes[f"r{int(target)}"], self.nodes[f"r{int(target) + self.SHARDS}"]):
            if order == "start" or node.paused:
                self.harm(node, order)
        return None

    def _hand_over(self, number: str) -> None:
        """The replica takes over from a master that is there and helps."""
        _, copy = self.shard(number)
        until(f"{copy.name} follows nobody", lambda: copy.is_in_step)
        self.watch.handed.add(copy.name)
        # A busy machine may miss the five seconds that a server gives its takeover; it then stays what it is.
        for _ in range(5):
            copy.client().execute_command("CLUSTER", "FAILOVER")
            try:
                return until(f"{copy.name} did not take over", lambda: copy.is_master, 8)
            except SetupFault:
                continue
        raise SetupFault(f"{copy.name} did not take over")

    # Moving slots.

    def _move(self, source: str, target: str) -> None:
        """Some hundred slots, those of the run's users first; what has been moved goes back before others do."""
        giver, taker = self.shard(source)[0], self.shard(target)[0]
        slots = self._moved or self._choice(giver)
        self._moved = [] if self._moved else slots
        # The new owner hears first, then the old one, then the third; replicas follow their masters.
        others = [node for node in self.nodes.values() if node not in (giver, taker) and node.is_master]
        tellers = [node.client() for node in (taker, giver, *others)]
        for start in range(0, len(slots), self.BATCH):
            self._move_batch(giver, taker, slots[start : start + self.BATCH], tellers)

    def _choice(self, giver: Node) -> list[int]:
        owned = {slot for low, high in slots_of(giver.client()) for slot in range(low, high + 1)}
        busy = [slot for slot in self._busy if slot in owned]
        return (busy + sorted(owned - set(busy)))[: self.MOVED_SLOTS]

    def _move_batch(self, giver: Node, taker: Node, slots: list[int], tellers: list[redis.Redis]) -> None:
        theirs, ours = tellers[:2]
        giver_id, taker_id = self._id(giver), self._id(taker)
        for slot in slots:
            theirs.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", giver_id)
            ours.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", taker_id)
        for slot in slots:
            keys = ours.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10_000)
            self._migrate(ours, taker, keys[: (len(keys) + 1) // 2])
        time.sleep(self.LINGER_S)
        for slot in slots:
            while keys := ours.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
                self._migrate(ours, taker, keys)
            for client in tellers:
                client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", taker_id)

    def _migrate(self, ours: redis.Redis, taker: Node, keys: list[str]) -> None:
        if keys:
            ours.execute_command("MIGRATE", "127.0.0.1", taker.port, "", 0, 5000, "KEYS", *keys)

    def heal(self) -> None:
        self.mend()
        self._await_copies()


class Sentinels(Group):
    """A master, two replicas and three Sentinels."""

    kind = "sentinel"
    NAME = "bells"
    DOWN_MS = 2000
    FAILOVER_MS = 8000

    def __init__(self, folder: Path) -> None:
        first = Node("r1", folder, [])
        copies = [Node(f"r{index}", folder, [f"replicaof 127.0.0.1 {first.port}"]) for index in (2, 3)]
        super().__init__([first, *copies])
        self._guarded = first
        self.sentinels = [self._sentinel(index, folder, first.port) for index in (1, 2, 3)]

    def _sentinel(self, index: int, folder: Path, master_port: int) -> Sentinel:
        lines = [
            f"sentinel monitor {self.NAME} 127.0.0.1 {master_port} 2",
            f"sentinel down-after-milliseconds {self.NAME} {self.DOWN_MS}",
            f"sentinel failover-timeout {self.NAME} {self.FAILOVER_MS}",
        ]
        return Sentinel(f"s{index}", folder, lines)

    @property
    def place(self) -> str:
        nodes = ", ".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"sentinel: {{ master: {self.NAME}, nodes: [{nodes}] }}"

    def client(self) -> redis.Redis:
        """Of the master that the Sentinels name now."""
        return self.master().client()

    def open(self) -> None:
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            await_answer(node.name, node.client)
        until("the replicas do not follow", lambda: self._copies() == 2)
        for sentinel in self.sentinels:
            sentinel.start()
        until("the Sentinels did not find each other", self._is_known)
        self.watch.start()

    def _copies(self) -> int:
        return sum(node.is_in_step for node in self.nodes.values())

    def _is_known(self) -> bool:
        for sentinel in self.sentinels:
            told = sentinel.told(self.NAME)
            if (told["num-other-sentinels"], told["num-slaves"]) != ("2", "2") or told["flags"] != "master":
                return False
        return True

    def master(self) -> Node:
        """As a Sentinel names it to a client."""
        asked = self.sentinels[0].client().execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.NAME)
        port = int(asked[1])
        return next(node for node in self.nodes.values() if node.port == port)

    def own(self, order: str, target: str) -> None:
        """An order `sentinel-…`. `kill` and `pause` fall on the master, `start` and `resume` on who needs it."""
        if order == "failover":
            return self._fail_over()
        if order in ("guard", "unguard"):
            return self._guard(order == "guard")
        if order in ("kill", "pause"):
            return self.harm(self.master(), order)
        for node in self.nodes.values():
            if order == "start" or node.paused:
                self.harm(node, order)
        return None

    def _guard(self, is_on: bool) -> None:
        """The master takes no write without all its replicas, so none once the first of them has left it."""
        self._guarded = self.master() if is_on else self._guarded
        copies = len(self.nodes) - 1 if is_on else 0
        insist(self._guarded.client(), ("CONFIG", "SET", "min-replicas-to-write", str(copies)))

    def _fail_over(self) -> None:
        before = self.master()

        def is_begun() -> bool:
            return self.sentinels[0].client().execute_command("SENTINEL", "FAILOVER", self.NAME) in (True, "OK", b"OK")

        until("no Sentinel begins a failover", is_begun, 20)
        until("the Sentinels named no other master", lambda: self.master() is not before)

    def heal(self) -> None:
        self.mend()
        until("the Sentinels do not see a master and two replicas", lambda: self._copies() == 2 and self._is_one())

    def _is_one(self) -> bool:
        """All of one mind, and the master is one."""
        ports = {sentinel.told(self.NAME)["port"] for sentinel in self.sentinels}
        return len(ports) == 1 and self.master().is_master

    def close(self) -> None:
        for sentinel in self.sentinels:
            sentinel.kill()
        super().close()


class Sentinel(Process):
    def __init__(self, name: str, folder: Path, lines: list[str]) -> None:
        self.port = lasting_port()
        place = folder / name
        place.mkdir()
        file = place / "sentinel.conf"
        file.write_text("\n".join([f"port {self.port}", "bind 127.0.0.1", f"dir {place}", *lines]) + "\n")
        super().__init__(name, folder, ["redis-server", str(file), "--sentinel"])

    def client(self) -> redis.Redis:
        return connect(self.port)

    def told(self, name: str) -> dict[str, str]:
        """What it knows of a master, as names and values."""
        answer = self.client().execute_command("SENTINEL", "MASTER", name)
        return {str(key): str(value) for key, value in dict(answer).items()}
