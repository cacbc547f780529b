# SPDX-License-Identifier: Apache-2.0
"""What a failover of Redis may cost is allowed to whom it may have hit, and to nobody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from redis.crc import key_slot

from chaos import cli, schedule
from chaos.checker import judge
from chaos.evidence import Commit, Evidence, Instant, Sample
from chaos.facts import slot_of
from chaos.replication import SLOTS, failovers_of
from chaos.report import as_text
from chaos.schedule import CLUSTER_FAULTS, FAULTS, SENTINEL_FAULTS, Shape, kinds_of
from chaos.tests.good_run import BASE, good_run, numbered
from chaos.tests.test_checker import (
    end_with_an_older_number,
    found,
    lose_a_record,
    push_of,
    reach_the_former_owner,
)

ALL = [(0, SLOTS - 1)]


def told(node: str, at: int, role: str, offset: int = 0, **fields: object) -> Sample:
    history = "new" if fields.get("former") else "old"
    return Sample(node, BASE + at - 5, BASE + at, role, offset, history=history, **fields)  # type: ignore[arg-type]


def fail_over(
    evidence: Evidence, at: int, slots: list[tuple[int, int]] | None = None, handed: bool = False, copied: int = 1100
) -> None:
    """`r1` dies; `r4` has its history up to some offset, which `r1` was past 0.2 s before."""
    samples = [told("r1", at - back, "master", offset) for back, offset in ((300, 1000), (200, 1100), (100, 1200))]
    samples.append(told("r1", at, "gone"))
    samples.append(told("r4", at + 100, "slave", copied, master="r1"))
    new = {"former": "old", "former_end": copied + 1, "slots": slots if slots is not None else ALL, "handed": handed}
    samples.append(told("r4", at + 3000, "master", copied, **new))
    evidence.replication = samples


def number_of_dan(number: int, fault: Callable[[Evidence], None]) -> tuple[list[str], dict[str, int]]:
    """dan's number at the end, which is 5 where nothing was lost; his m11 is claimed between 22.000 and 22.055 s."""
    evidence = good_run()
    evidence.run.badges["dan"] = number
    fault(evidence)
    report = judge(evidence)
    assert all(finding.uid == "dan" for finding in report.findings)
    return [finding.kind for finding in report.findings], report.figures["allowed"]


@pytest.mark.parametrize(
    ("number", "kinds", "allowed"),
    [(5, [], {}), (4, [], {"badge": 1}), (3, ["badge"], {}), (6, ["badge"], {})],
)
def test_a_step_that_was_written_just_before_may_be_gone(number: int, kinds: list[str], allowed: dict) -> None:
    assert number_of_dan(number, lambda evidence: fail_over(evidence, 22_100)) == (kinds, allowed)


OUTSIDE: dict[str, Callable[[Evidence], None]] = {
    "no failover": lambda evidence: None,
    "long before": lambda evidence: fail_over(evidence, 21_900),
    "long after": lambda evidence: fail_over(evidence, 22_300),
    "all was copied": lambda evidence: fail_over(evidence, 22_300, copied=1300),
    "another's slots": lambda evidence: fail_over(
        evidence, 22_100, [(0, slot_of("dan") - 1), (slot_of("dan") + 1, SLOTS - 1)]
    ),
    "by hand": lambda evidence: fail_over(evidence, 22_100, handed=True),
}


@pytest.mark.parametrize("where", OUTSIDE)
def test_outside_of_what_may_be_lost_a_missing_step_is_named(where: str) -> None:
    assert number_of_dan(4, OUTSIDE[where]) == (["badge"], {})


def test_only_the_slots_of_the_master_count() -> None:
    slot = slot_of("dan")
    assert number_of_dan(4, lambda evidence: fail_over(evidence, 22_100, [(slot, slot)])) == ([], {"badge": 1})


def test_a_lost_step_down_leaves_the_number_too_high() -> None:
    """m5 was read between 8.0 and 8.2 s, m4 recalled between 6.000 and 6.050 s."""
    for at, number, kinds in ((8_200, 1, []), (8_200, 2, ["badge"]), (6_100, 1, []), (12_000, 1, ["badge"])):
        evidence = good_run()
        evidence.run.badges["cid"] = number
        fail_over(evidence, at)
        assert [finding.kind for finding in found(evidence)] == kinds, (at, number)


def test_a_lost_step_makes_the_next_number_lower() -> None:
    """ann's m2 was claimed between 2.00 and 2.06 s."""
    for at, kinds in ((2_100, []), (2_600, ["old-badge"])):
        evidence = good_run()
        end_with_an_older_number(evidence)
        fail_over(evidence, at)
        assert [finding.kind for finding in found(evidence)] == kinds


def double(evidence: Evidence, incident: int | None) -> None:
    """m11 goes a second time four seconds later; `incident`: its record was read again then."""
    push = push_of(evidence, "m11")
    evidence.pushes = numbered([*evidence.pushes, replace(push, at_ms=push.at_ms + 4000)])
    if incident is not None:
        evidence.instants.append(Instant(BASE + incident, "revoked", "w3", breaks=True))


@pytest.mark.parametrize(
    ("at", "incident", "kinds"),
    [
        (22_100, 25_000, []),
        # Nobody had a reason to read the record again.
        (22_100, None, ["doubled"]),
        # The mark was copied, or written only afterwards.
        (21_500, 25_000, ["doubled"]),
        (23_000, 25_000, ["doubled"]),
    ],
)
def test_a_lost_mark_costs_a_repeat_where_the_record_is_read_again(
    at: int, incident: int | None, kinds: list[str]
) -> None:
    evidence = good_run()
    double(evidence, incident)
    fail_over(evidence, at)
    report = judge(evidence)
    assert [finding.kind for finding in report.findings] == kinds
    assert report.figures["allowed"] == ({} if kinds else {"doubled": 1})
    assert "1 users" in as_text(report) or kinds


def write_again(evidence: Evidence) -> None:
    """m11's record is written a second time, two seconds after the first, to another partition."""
    first = next(p for p in evidence.produced if p.value and p.value["event_id"] == "e-m11")
    evidence.produced.append(replace(first, at_ms=first.at_ms + 2000, partition=1, offset=0))
    evidence.commits.append(Commit(first.at_ms + 2200, first.topic, 1, 1))
    evidence.run.ends[first.topic]["1"] = (1, 1)


def test_a_lost_mark_costs_a_repeat_where_the_record_was_written_twice() -> None:
    for at, kinds in ((22_100, []), (21_500, ["doubled"])):
        evidence = good_run()
        double(evidence, None)
        write_again(evidence)
        fail_over(evidence, at)
        assert [finding.kind for finding in found(evidence)] == kinds


def test_a_lost_mark_lets_a_repeat_go_to_the_new_token_of_the_device() -> None:
    for at, kinds in ((22_100, []), (21_500, ["verdict"])):
        evidence = good_run()
        push, again = push_of(evidence, "m11"), "11111111-2222-8333-8444-555555555555"
        evidence.pushes = numbered([*evidence.pushes, replace(push, at_ms=push.at_ms + 4000, apns_id=again)])
        record = next(r for r in evidence.results if r.value.get("pid") == push.apns_id)
        told_again = {**record.value, "pid": again, "apns_id": again}
        evidence.results.append(replace(record, at_ms=record.at_ms + 4000, offset=900, value=told_again))
        write_again(evidence)
        fail_over(evidence, at)
        report = judge(evidence)
        assert [f.kind for f in report.findings if f.kind != "order"] == kinds
        assert report.figures["allowed"].get("verdict", 0) == (0 if kinds else 1)


@pytest.mark.parametrize(
    ("falsify", "at", "kind"), [(lose_a_record, 3_100, "lost"), (reach_the_former_owner, 16_100, "wrong-person")]
)
def test_nothing_is_allowed_of_what_must_never_be(falsify: Callable[[Evidence], None], at: int, kind: str) -> None:
    evidence = good_run()
    falsify(evidence)
    fail_over(evidence, at)
    assert [finding.kind for finding in found(evidence)] == [kind]


def test_what_waited_for_a_new_master_goes_soon() -> None:
    for late, kinds in ((9_000, []), (11_000, ["slow"])):
        evidence = good_run()
        evidence.instants = []
        fail_over(evidence, 22_000)
        push = push_of(evidence, "m11")
        evidence.pushes = [
            replace(p, at_ms=BASE + 25_000 + late) if p is push else p
            for p in evidence.pushes
            if p.msg_id not in ("m12", "m13", "m14")
        ]
        evidence.pushes = numbered(evidence.pushes)
        assert [f.kind for f in found(evidence) if f.kind == "slow"] == kinds


def test_nobody_waits_for_a_master_that_has_none_of_his_keys() -> None:
    """dan's m11 is pushed 4 s after its record, while `r1` is away."""
    tokens = [slot_of(token * 32) for token in ("d1", "d2")]
    for slot, kinds in ((slot_of("dan"), []), (tokens[1], []), (slot_of("nobody"), ["slow"])):
        evidence = good_run()
        evidence.run.redis = "cluster"
        evidence.instants = []
        fail_over(evidence, 21_900, [(slot, slot)])
        push = push_of(evidence, "m11")
        moved = [replace(p, at_ms=BASE + 26_000) if p is push else p for p in evidence.pushes]
        evidence.pushes = numbered([p for p in moved if p.msg_id not in ("m12", "m13", "m14")])
        assert [f.kind for f in found(evidence) if f.kind == "slow"] == kinds


# What the servers tell.


def test_a_master_that_went_on_to_answer_may_have_lost_all_until_its_last_write() -> None:
    """Sentinels name another master while the first one is there: keys are written until nobody goes there any more."""
    old = [(0, 100, 1), (100, 200, 2), (200, 300, 3), (300, 400, 4), (1000, 414, 4), (1100, 545, 4), (5000, 676, 4)]
    samples = [told("r1", at, "master", offset, changes=changes) for at, offset, changes in old]
    samples += [told("r1", 9000, "slave", 500, master="r2"), told("r2", 90, "slave", 150, master="r1")]
    samples.append(told("r2", 150, "master", 200, former="old", former_end=201, slots=ALL))
    (failover,) = failovers_of(samples)
    assert (failover.old, failover.new, failover.at_ms - BASE) == ("r1", "r2", 150)
    assert [(start - BASE, end - BASE) for start, end in failover.spans] == [(95, 1000)]


def test_a_stopped_master_answers_nothing_until_it_goes_on() -> None:
    samples = [told("r1", 0, "master", 100), told("r1", 100, "paused"), told("r1", 6000, "resumed")]
    samples += [told("r1", 6100, "master", 900), told("r1", 6200, "slave", 950, master="r2")]
    samples += [told("r2", 50, "slave", 90, master="r1")]
    samples.append(told("r2", 3000, "master", 100, former="old", former_end=101, slots=ALL))
    (failover,) = failovers_of(samples)
    assert [(start - BASE, end - BASE) for start, end in failover.spans] == [(-5, 100), (5995, 6200)]
    assert failover.may_have_lost(0, BASE + 50, BASE + 60)
    assert not failover.may_have_lost(0, BASE + 200, BASE + 5900)


def test_a_server_that_was_a_master_all_along_took_over_from_nobody() -> None:
    assert failovers_of([told("r1", 0, "master", 1), told("r1", 50, "gone"), told("r1", 90, "master", 1)]) == []


def test_slots_are_those_of_redis() -> None:
    for name in ("u001", "m00042", "g-big"):
        assert slot_of(name) == key_slot(f"c:u:{{im:{name}}}".encode())


# Kinds.


def test_kinds_of_one_redis_are_not_played_on_another(tmp_path: Path) -> None:
    for redis, kind in (("single", "cluster-kill"), ("sentinel", "cluster-kill"), ("cluster", "sentinel-stop")):
        with pytest.raises(SystemExit):
            cli.main(["run", "--redis", redis, "--fault", kind, "--keep", str(tmp_path)])
    assert kinds_of("cluster") == [*CLUSTER_FAULTS, *FAULTS]
    assert kinds_of("sentinel") == [*SENTINEL_FAULTS, *FAULTS]


@pytest.mark.parametrize("fault", [*CLUSTER_FAULTS, *SENTINEL_FAULTS])
@pytest.mark.parametrize("seed", range(1, 6))
def test_what_is_done_to_a_group_is_undone(fault: str, seed: int) -> None:
    shape = Shape()
    actions = schedule.make(fault, seed, shape)
    assert actions == schedule.make(fault, seed, shape)
    assert all(0 < action.at_s < shape.seconds + 10 for action in actions)
    verbs = [action.verb for action in actions]
    for harm, cure in (("kill", "start"), ("pause", "resume"), ("guard", "unguard")):
        for group in ("cluster-", "sentinel-", ""):
            assert verbs.count(group + harm) == verbs.count(group + cure)
    moves = [action.target for action in actions if action.verb == "cluster-move"]
    assert not moves or moves == [moves[0], ">".join(reversed(moves[0].split(">")))]


def test_a_lost_mark_lets_a_repeat_end_otherwise() -> None:
    """m11 was pushed; of its repeat, four seconds later, the device gets nothing any more."""
    for at, kinds in ((22_100, []), (21_500, ["verdict"])):
        evidence = good_run()
        push = push_of(evidence, "m11")
        record = next(r for r in evidence.results if r.value.get("pid") == push.apns_id)
        later = {key: value for key, value in record.value.items() if key != "pid"}
        later |= {"verdict": "suppressed", "reason": "revoked"}
        evidence.results.append(replace(record, at_ms=record.at_ms + 4000, offset=900, value=later))
        write_again(evidence)
        fail_over(evidence, at)
        report = judge(evidence)
        assert [f.kind for f in report.findings] == kinds
        assert report.figures["allowed"].get("verdict", 0) == (0 if kinds else 1)
