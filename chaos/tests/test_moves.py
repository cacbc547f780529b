# SPDX-License-Identifier: Apache-2.0
"""A move to another Kafka cluster costs what docs/operations.md names, and nothing else."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from chaos import cli, schedule
from chaos.checker import judge
from chaos.checks import statistics
from chaos.evidence import DEAD_LETTER, EVENTS, USER_STATE, Commit, Evidence, Instant, Read
from chaos.facts import Facts
from chaos.kafka import Watcher
from chaos.mirror import Mirror, _offsets
from chaos.replication import restored
from chaos.schedule import SINGLE_FAULTS, Shape, kinds_of
from chaos.servers import Broker, RedisServer
from chaos.tests.good_run import BASE, good_run, move_to_a_mirror, numbered
from chaos.tests.test_checker import double_without_reason, found, produced, push_of, record_of


def place_of(evidence: Evidence, event_id: str) -> int:
    return produced(evidence, event_id).offset


def moved(at: int = 20_500, translated: int = 0) -> Evidence:
    evidence = good_run()
    move_to_a_mirror(evidence, at, translated)
    return evidence


def kinds(evidence: Evidence) -> list[str]:
    return [finding.kind for finding in found(evidence)]


def test_a_good_move_has_no_findings() -> None:
    report = judge(moved())
    assert report.findings == []
    assert report.figures["moves"] == ["20.500 s; the mirror lacks im.events 3 records"]


@pytest.mark.parametrize(("what", "text"), [("other-log", "another one"), ("resumed", "apply user state")])
def test_a_move_that_no_worker_notices_is_named(what: str, text: str) -> None:
    evidence = moved()
    evidence.instants = [instant for instant in evidence.instants if instant.what != what]
    (finding,) = found(evidence)
    assert finding.kind == "move" and text in finding.text


def test_what_is_read_again_after_a_move_is_not_pushed_again() -> None:
    """m10 was pushed two seconds before the move; the group's offset on the mirror lies before it."""
    evidence = moved()
    double_again(evidence, "m10", 22_000)
    assert kinds(evidence) == ["doubled"]


def double_again(evidence: Evidence, msg_id: str, at: int) -> None:
    push = push_of(evidence, msg_id)
    evidence.pushes = numbered([*evidence.pushes, replace(push, at_ms=BASE + at)])


def restore(evidence: Evidence, backup: int, at: int) -> None:
    evidence.instants += [Instant(BASE + backup, "redis-backup"), Instant(BASE + at, "redis-restore")]


@pytest.mark.parametrize(
    ("backup", "at", "is_read_again", "again", "lawful"),
    [
        (17_000, 20_400, True, 22_000, True),
        # The backup has its mark; the group's offset is higher; Redis still had the mark.
        (18_600, 20_400, True, 22_000, False),
        (17_000, 20_400, False, 22_000, False),
        (17_000, 24_000, True, 22_000, False),
    ],
)
def test_a_backup_of_redis_costs_repeats_of_what_is_read_again(
    backup: int, at: int, is_read_again: bool, again: int, lawful: bool
) -> None:
    """m10 is pushed at 18.05 s."""
    evidence = moved()
    evidence.run.moves[0].translated[EVENTS]["0"] = place_of(evidence, "e-m10") + (not is_read_again)
    restore(evidence, backup, at)
    double_again(evidence, "m10", again)
    assert kinds(evidence) == ([] if lawful else ["doubled"])


def test_what_is_parked_is_read_again_from_its_own_topic() -> None:
    evidence = moved()
    evidence.run.moves[0].translated[EVENTS]["0"] = place_of(evidence, "e-m10") + 1
    restore(evidence, 17_000, 20_400)
    double_again(evidence, "m10", 22_000)
    assert kinds(evidence) == ["doubled"]
    parked = record_of(evidence, "m10", "new")
    evidence.results.append(replace(parked, value={**parked.value, "verdict": "parked", "pid": ""}))
    assert kinds(evidence) == []


def test_an_undisturbed_repeat_stays_a_finding_after_a_move() -> None:
    evidence = moved()
    restore(evidence, 8_000, 20_400)
    double_without_reason(evidence)
    assert kinds(evidence) == ["doubled"]


def test_a_backup_costs_claims_and_no_user_state() -> None:
    """dan's m6 was claimed at 9.0 s; cid's m5 was read at 8.0 s."""
    for uid, number, lawful in (("dan", 4, True), ("dan", 3, False), ("cid", 1, False)):
        evidence = moved(10_500)
        evidence.run.moves[0].translated[EVENTS]["0"] = place_of(evidence, "e-m7") + 1
        restore(evidence, 7_900, 10_400)
        evidence.run.badges[uid] = number
        assert kinds(evidence) == ([] if lawful else ["badge"]), (uid, number)


def test_a_restored_redis_has_lost_what_was_written_since_the_backup() -> None:
    orders = [Instant(5, "redis-restore"), Instant(10, "redis-backup"), Instant(30, "redis-restore")]
    (failover,) = restored(orders)
    assert failover.spans == ((10, 30),) and failover.lost_ms == 30
    assert failover.may_have_lost(7, 20, 25) and not failover.may_have_lost(7, 31, 40)


@pytest.mark.parametrize(("missing", "lawful"), [(-1, False), (1, True), (2, False)])
def test_statistics_may_miss_what_was_open_at_the_move(missing: int, lawful: bool) -> None:
    """m11 has its record 0.5 s before the workers end; m10 had it four seconds earlier."""
    evidence = moved(22_755)
    counted = statistics.records(Facts(evidence))
    assert statistics.open_at_moves(Facts(evidence)) == Counter(accepted=1)
    evidence.run.stats = dict(counted) | {"accepted": counted["accepted"] - missing}
    assert kinds(evidence) == ([] if lawful else ["statistics"])


def test_a_backup_and_a_mirror_make_no_state_late() -> None:
    evidence = good_run()
    for what, disturbs in (("kafka-mirror", False), ("redis-backup", False), ("kafka-move", True)):
        evidence.instants = [Instant(BASE, what)]
        assert Facts(evidence).disturbed(BASE, BASE + 1) == disturbs


def test_a_dead_letter_names_the_place_in_the_first_cluster(tmp_path: Path) -> None:
    mirror = Mirror("127.0.0.1:1", Broker(tmp_path, tmp_path, 4, "mirror"), 4, 1)
    mirror.begins = {(EVENTS, 2): 40}
    headers = {"carillon-topic": EVENTS, "carillon-partition": "2", "carillon-offset": "3"}
    assert mirror.as_first(Read(DEAD_LETTER, 0, 0, 0, "", {}, headers)).headers["carillon-offset"] == "43"
    evidence = moved()
    result = record_of(evidence, "m6", "dan")
    assert mirror.as_first(result) is result


def test_offsets_of_the_mirror_count_as_those_of_the_first_cluster() -> None:
    watcher = Watcher("127.0.0.1:1", 1, begins={(EVENTS, 0): 40})
    for place in (p for p in watcher._places if p.topic == EVENTS):
        for offset in (-1001, 3, 3):
            place.offset = offset
            watcher._note([place])
    assert [(commit.topic, commit.offset) for commit in watcher.commits] == [(EVENTS, 43)]
    assert (watcher.committed(EVENTS, 0), watcher.committed(USER_STATE, 0)) == (43, 0)
    assert isinstance(watcher.commits[0], Commit)


def test_offsets_are_read_with_their_metadata() -> None:
    def text(text: str) -> bytes:
        return struct.pack(">h", len(text)) + text.encode()

    answer = struct.pack(">iii", 0, 1, 1) + text(EVENTS) + struct.pack(">i", 2)
    answer += struct.pack(">iq", 0, 17) + text("carillon1:17:Ag") + struct.pack(">h", 0)
    answer += struct.pack(">iqhh", 1, -1, -1, 0)
    assert _offsets(BytesIO(answer)) == {(EVENTS, 0): (17, "carillon1:17:Ag"), (EVENTS, 1): (-1, "")}


def test_a_redis_starts_from_its_backup(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    server.start()
    try:
        server.await_ready()
        server.client().set("old", 1)
        server.back_up()
        server.client().set("new", 1)
        server.restore()
        assert server.client().keys() == ["old"]
    finally:
        server.kill()


def test_backups_are_of_a_single_redis() -> None:
    assert set(SINGLE_FAULTS) <= set(kinds_of("single"))
    assert not set(SINGLE_FAULTS) & set(kinds_of("cluster"))
    with pytest.raises(SystemExit):
        cli.main(["schedule", "--redis", "sentinel", "--fault", next(iter(SINGLE_FAULTS))])
    assert schedule.make("kafka-move+backup", 2, Shape()) != schedule.make("kafka-move+backup", 3, Shape())


def test_a_move_is_judged_the_same_from_its_files(tmp_path: Path) -> None:
    evidence = moved()
    evidence.save(tmp_path)
    assert Evidence.load(tmp_path).run.moves == evidence.run.moves
