# SPDX-License-Identifier: Apache-2.0
"""What a run leaves behind: plain records of what was produced, pushed, recorded and committed.

The checker reads nothing else. A run's evidence is kept as a folder of NDJSON files, so that it can be judged again.
Times are Unix milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

EVENTS = "im.events"
USER_STATE = "im.user-state"
RESULTS = "push.results"
DELIVERIES = "im.deliveries"
FEEDBACK = "push.feedback"
DEAD_LETTER = "push.dead-letter"
# The workers' own topics: members of large groups, and work that waits.
CHUNKS = "carillon.chunks"
PARKED = "carillon.parked"
INPUTS = (EVENTS, USER_STATE)
OUTPUTS = (RESULTS, DELIVERIES, FEEDBACK, DEAD_LETTER)

FINAL_VERDICTS = frozenset({"accepted", "rejected", "expired", "suppressed", "online"})


@dataclass(frozen=True)
class Produced:
    """A record written to an input topic, with its place as the broker confirmed it."""

    at_ms: int
    topic: str
    partition: int
    offset: int
    key: str
    # The JSON object; None: the record was meant to be bad.
    value: dict[str, Any] | None
    raw: str = ""


@dataclass(frozen=True)
class Read:
    """A record read from an output topic."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    key: str
    value: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Push:
    """One line of the simulator's ledger."""

    line: int
    at_ms: int
    connection: int
    token: str
    apns_id: str
    # None: a fault took the answer's place, APNs did not process it.
    status: int | None
    reason: str
    fault: str
    # From the payload (profile rc); empty where it has none.
    msg_id: str
    uid: str
    badge: int | None

    @property
    def accepted(self) -> bool:
        return self.status == 200


@dataclass(frozen=True)
class Commit:
    """The committed offset of a partition, as first seen."""

    at_ms: int
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Assignment:
    """How many partitions a worker held, from when on."""

    at_ms: int
    worker: str
    partitions: int


@dataclass(frozen=True)
class Delay:
    """How long a record that was produced at `at_ms` waited for a plain consumer."""

    at_ms: int
    topic: str
    partition: int
    waited_ms: int


@dataclass(frozen=True)
class Sample:
    """What a server of a replicated Redis told of its copies (INFO), asked at `asked_ms`; or what was done to it."""

    node: str
    asked_ms: int
    told_ms: int
    # `master` or `slave`, as it says itself; `gone`, `paused`, `resumed`: by the nemesis.
    role: str
    offset: int = 0
    # Keys that were written: the offset rises by what servers and Sentinels tell each other too.
    changes: int = 0
    # Whose history it has, whose it had before it became a master, and the first offset that is not of that one.
    history: str = ""
    former: str = ""
    former_end: int = -1
    # Of a replica: the server that it copies.
    master: str = ""
    # Of one that has just become a master: what it serves, and whether the former one helped.
    slots: list[tuple[int, int]] = field(default_factory=list)
    handed: bool = False


@dataclass(frozen=True)
class Instant:
    """A moment at which something was done to the system, or the group moved.

    `breaks`: what is in flight then may be sent twice. `resumes`: a worker goes on after it was stopped.
    """

    at_ms: int
    what: str
    target: str = ""
    breaks: bool = False
    resumes: bool = False


@dataclass(frozen=True)
class Exit:
    """The end of a worker process. `asked` is SIGTERM's time, None: nobody ended it; `killed`: by the nemesis."""

    at_ms: int
    worker: str
    code: int
    asked_ms: int | None = None
    killed: bool = False
    # The SIGTERM at the end, when all was healthy.
    last: bool = False
    tail: str = ""


@dataclass(frozen=True)
class Move:
    """A move to another Kafka cluster: a mirror that lacks the oldest records, so that its offsets are lower.

    The evidence has the first cluster's offsets only: those of the mirror are raised by the number of missing records.
    """

    at_ms: int
    # topic -> partition -> offset of the mirror's oldest record.
    begins: dict[str, dict[str, int]] = field(default_factory=dict)
    # The same of the group's offsets there.
    translated: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass
class Device:
    """A device of the run; `state` is `fg` or `bg` for a live phone, `desktop` for a live desktop, empty for none."""

    uid: str
    device: str
    state: str = ""


@dataclass
class Run:
    """What the harness knows of its run."""

    seed: int = 0
    fault: str = "none"
    # `single`, `cluster`, `sentinel`.
    redis: str = "single"
    workers: int = 3
    # APNs' time to answer.
    delay_ms: int = 0
    # The window in which alerts of a conversation are merged; 0: none.
    burst_ms: int = 0
    answer_s: float = 5.0
    base_ms: int = 0
    # Total partitions of the two input topics.
    partitions: int = 8
    # Whether one process did all the pushing.
    single: bool = False
    schedule: list[str] = field(default_factory=list)
    groups: dict[str, dict[str, int]] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)
    # Spans in which the gateways' leases may have been void.
    lease_gaps: list[tuple[int, int]] = field(default_factory=list)
    # Committed and end of each input partition when the run was over: topic -> partition -> (committed, end).
    ends: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    badges: dict[str, int] = field(default_factory=dict)
    # By verdict, as `carillon stats` tells it, without numbers alone; None: not known.
    stats: dict[str, int] | None = None
    # To another Kafka cluster; at most one.
    moves: list[Move] = field(default_factory=list)


@dataclass
class Evidence:
    run: Run = field(default_factory=Run)
    produced: list[Produced] = field(default_factory=list)
    pushes: list[Push] = field(default_factory=list)
    results: list[Read] = field(default_factory=list)
    deliveries: list[Read] = field(default_factory=list)
    feedback: list[Read] = field(default_factory=list)
    dead: list[Read] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    instants: list[Instant] = field(default_factory=list)
    exits: list[Exit] = field(default_factory=list)
    replication: list[Sample] = field(default_factory=list)
    # Of plain consumers that are restarted as the workers are; of runs with a rollout.
    plain: list[Delay] = field(default_factory=list)

    _LISTS = (
        ("produced", Produced),
        ("results", Read),
        ("deliveries", Read),
        ("feedback", Read),
        ("dead", Read),
        ("commits", Commit),
        ("assignments", Assignment),
        ("instants", Instant),
        ("exits", Exit),
        ("replication", Sample),
        ("plain", Delay),
    )

    def save(self, folder: Path) -> None:
        """Writes all but the ledger, which the simulator wrote there itself."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").write_text(json.dumps(asdict(self.run), indent=1))
        for name, _ in self._LISTS:
            write_lines(folder / f"{name}.ndjson", (asdict(item) for item in getattr(self, name)))

    @classmethod
    def load(cls, folder: Path) -> Evidence:
        fields = json.loads((folder / "run.json").read_text())
        fields["devices"] = [Device(**item) for item in fields["devices"]]
        fields["moves"] = [Move(**item) for item in fields.get("moves", [])]
        fields["lease_gaps"] = [(start, end) for start, end in fields["lease_gaps"]]
        evidence = cls(run=Run(**fields), pushes=read_ledger(folder / "ledger.ndjson"))
        for name, kind in cls._LISTS:
            setattr(evidence, name, [kind(**item) for item in read_lines(folder / f"{name}.ndjson")])
        return evidence


def write_lines(path: Path, items: Iterable[dict[str, Any]]) -> None:
    with path.open("w") as file:
        for item in items:
            file.write(json.dumps(item, ensure_ascii=False, separators=(",", ":")) + "\n")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with path.open() as file:
        for line in file:
            yield json.loads(line)


def read_ledger(path: Path) -> list[Push]:
    """The ledger's lines; a last one that a killed simulator left unfinished is dropped."""
    pushes: list[Push] = []
    if not path.exists():
        return pushes
    with path.open() as file:
        for number, line in enumerate(file):
            try:
                pushes.append(push_from_line(number, json.loads(line)))
            except json.JSONDecodeError:
                continue
    return pushes


def push_from_line(number: int, line: dict[str, Any]) -> Push:
    payload = line.get("payload")
    payload = payload if isinstance(payload, dict) else {}
    rc = payload.get("rc", {})
    badge = payload.get("aps", {}).get("badge")
    return Push(
        line=number,
        at_ms=line["at_ms"],
        connection=line["conn"],
        token=line["token"],
        apns_id=line["apns_id"],
        status=line.get("status"),
        reason=line.get("reason", ""),
        fault=line.get("fault", ""),
        msg_id=rc.get("id", ""),
        uid=rc.get("rId", ""),
        badge=badge if isinstance(badge, int) else None,
    )
