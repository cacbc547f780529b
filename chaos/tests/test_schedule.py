# SPDX-License-Identifier: Apache-2.0
"""Schedules and traffic are drawn from the seed alone, and say what they mean."""

from __future__ import annotations

from collections import Counter

import pytest

from chaos import schedule
from chaos.breaks import BREAKS
from chaos.evidence import EVENTS, USER_STATE
from chaos.findings import KINDS
from chaos.fleet import told_by
from chaos.nemesis import scenario
from chaos.schedule import FAULTS, SINGLE_FAULTS, VERSION_FAULTS, Action, Shape
from chaos.traffic import BIG_GROUP, DEAD_PREFIX, Load, Send, Story, first_records, population

BASE = 1_700_000_000_000


def story(seed: int) -> list[Send]:
    load = Load(big_times=(5.0,), big_members=1200)
    return Story(seed, load, population(seed, load), BASE).tell()


@pytest.mark.parametrize("fault", [*FAULTS, *SINGLE_FAULTS, *VERSION_FAULTS])
def test_a_schedule_is_the_same_for_the_same_seed(fault: str) -> None:
    shape = Shape()
    assert schedule.make(fault, 7, shape) == schedule.make(fault, 7, shape)
    # What begins within the traffic ends soon after it at the latest.
    assert all(0 < action.at_s < shape.seconds + 10 for action in schedule.make(fault, 7, shape))


@pytest.mark.parametrize("fault", [*FAULTS, *SINGLE_FAULTS])
@pytest.mark.parametrize("seed", range(1, 6))
def test_what_a_schedule_takes_away_it_gives_back(fault: str, seed: int) -> None:
    cures = {
        "pause": "resume",
        "redis-kill": "redis-start",
        "redis-pause": "redis-resume",
        "redis-full": "redis-room",
        "redis-replica": "redis-master",
        "redis-lonely": "redis-enough",
        "broker-down": "broker-up",
        "apns-kill": "apns-start",
        "kafka-mirror": "kafka-point",
        "redis-backup": "redis-restore",
    }
    verbs = [action.verb for action in schedule.make(fault, seed, Shape())]
    for harm, cure in cures.items():
        harms = [index for index, verb in enumerate(verbs) if verb == harm]
        done = [index for index, verb in enumerate(verbs) if verb == cure]
        assert len(harms) == len(done)
        assert all(first < last for first, last in zip(harms, done, strict=True))


def test_seeds_play_every_kind_in_turn() -> None:
    assert {schedule.fault_of(seed, list(FAULTS)) for seed in range(1, len(FAULTS) + 1)} == set(FAULTS)
    assert schedule.fault_of(3, ["kill", "stop"]) == "kill"


def test_rollouts_are_played_on_a_broker_whose_rebalances_end() -> None:
    assert schedule.broker_of("rolling") == schedule.broker_of("full+rolling") == "tansu"
    assert schedule.broker_of("kill") == "embedded"


def test_rules_of_a_scenario_count_from_the_simulators_start() -> None:
    action = Action(10.0, "apns-rule", until_s=20.0, rule={"match": {"share": 0.4}, "answer": {"status": 503}})
    rules = scenario([action], BASE, BASE - 5000, 20)["rules"]
    assert rules[0]["match"] == {"share": 0.4, "after_s": 15.0, "until_s": 25.0}
    # Started again in its midst, and after its end.
    assert scenario([action], BASE, BASE + 12_000, 20)["rules"][0]["match"]["until_s"] == 8.0
    assert len(scenario([action], BASE, BASE + 21_000, 20)["rules"]) == 2


def test_traffic_is_the_same_for_the_same_seed() -> None:
    assert story(3) == story(3)
    assert story(3) != story(4)


def test_traffic_has_all_that_is_to_be_put_to_the_test() -> None:
    sends = story(1)
    kinds = Counter(send.value["kind"] for send in sends if send.value is not None)
    assert {"message", "revoke", "read", "bind", "badge_report"} <= set(kinds)
    messages = [send.value for send in sends if send.value is not None and send.value["kind"] == "message"]
    assert any("mention" in value for value in messages)
    assert any("force" in value["push"] for value in messages)
    assert any("expire_at_ms" in value for value in messages)
    assert any(value["conv"]["id"] == BIG_GROUP for value in messages)
    assert sum(send.value is None for send in sends) == 2
    names = [value["event_id"] for value in messages]
    assert len(names) > len(set(names)), "nothing is repeated"


def test_sequence_numbers_rise_with_time_in_every_conversation() -> None:
    last: dict[str, int] = {}
    seen: set[str] = set()
    for send in story(2):
        value = send.value
        if value is None or value["kind"] != "message" or value["event_id"] in seen:
            continue
        seen.add(value["event_id"])
        assert value["server_seq"] == last.get(send.key, 0) + 1
        last[send.key] = value["server_seq"]


def test_roles_keep_apart_what_could_not_be_judged_together() -> None:
    load = Load()
    people = population(5, load)
    readers = {send.value["uid"] for send in story(5) if send.value is not None and send.value["kind"] == "read"}
    assert readers <= set(people.of_role("reader"))
    dead = {uid for (uid, _), (token, _) in people.tokens.items() if token.startswith(DEAD_PREFIX)}
    assert dead == set(people.of_role("dead"))
    assert not {uid for uid, _ in people.tokens} & set(people.of_role("tokenless"))
    assert {send.topic for send in first_records(people, BASE)} == {USER_STATE}
    assert {send.topic for send in story(5)} == {EVENTS, USER_STATE}


def test_each_break_names_faults_and_findings_that_exist() -> None:
    assert len(BREAKS) == 9
    for defect in BREAKS.values():
        assert set(defect.faults) <= set(schedule.kinds_of(defect.redis))
        assert set(defect.findings) <= set(KINDS)


def test_rebalances_are_read_from_a_workers_log() -> None:
    log = '{"at":"2026-01-02T03:04:05.678Z","level":"info","msg":"partitions revoked","count":2,"lost":false}\nnoise\n'
    (instant,) = told_by("w1", log)
    assert (instant.at_ms, instant.what, instant.breaks) == (1_767_323_045_678, "revoked", True)


def test_older_data_is_read_from_a_workers_log() -> None:
    log = (
        '{"at":"2026-01-02T03:04:05.678Z","level":"error","msg":"Redis has the user state of another Kafka cluster or '
        'topic: nothing is decided by it until all is applied again"}\n'
        '{"at":"2026-01-02T03:04:06.000Z","level":"warning","msg":"Redis has its data again"}\n'
    )
    assert [(instant.what, instant.breaks) for instant in told_by("w1", log)] == [
        ("other-log", False),
        ("resumed", False),
    ]


@pytest.mark.parametrize("fault", ["kafka-move", "503+kafka-move", *SINGLE_FAULTS])
@pytest.mark.parametrize("seed", range(1, 6))
def test_a_move_follows_the_recipe(fault: str, seed: int) -> None:
    """The mirror is there before, no worker runs during the move, and Redis is restored before workers start."""
    actions = schedule.make(fault, seed, Shape())
    verbs = [action.verb for action in actions if action.verb != "apns-rule"]
    assert verbs[0] == "kafka-mirror"
    ends = [verb for verb in verbs if verb in ("term", "kill")]
    assert len(ends) == 3 and len(set(ends)) == 1
    move = verbs.index("kafka-move")
    assert verbs.index(ends[0]) + 3 == verbs.index("await") < move < verbs.index("start") < verbs.index("kafka-point")
    if fault in SINGLE_FAULTS:
        assert verbs.index("redis-backup") < verbs.index(ends[0])
        assert (verbs.index("redis-restore") < move) == (fault == "kafka-move+backup")
