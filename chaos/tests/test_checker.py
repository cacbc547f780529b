# SPDX-License-Identifier: Apache-2.0
"""The checker is silent about a good run, and of a falsified one it names what was falsified and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.checker import judge
from chaos.checks import duplicates, statistics
from chaos.evidence import EVENTS, USER_STATE, Delay, Evidence, Instant, Produced, Push, Read
from chaos.facts import Facts
from chaos.findings import KINDS, Finding
from chaos.report import as_text
from chaos.tests.good_run import BASE, DELAY, KILL, good_run, move_to_a_mirror, numbered


def found(evidence: Evidence) -> list[Finding]:
    return judge(evidence).findings


def push_of(evidence: Evidence, msg_id: str, device_token: str = "") -> Push:
    """The last push of a message."""
    return [push for push in evidence.pushes if push.msg_id == msg_id and push.token.startswith(device_token)][-1]


def record_of(evidence: Evidence, msg_id: str, uid: str) -> Read:
    return next(r for r in evidence.results if (r.value["msg_id"], r.value["uid"]) == (msg_id, uid))


def settle(evidence: Evidence, topic: str, offset: int, at: int) -> None:
    """Moves a commit to another time."""
    evidence.commits = [
        replace(c, at_ms=BASE + at) if (c.topic, c.offset) == (topic, offset + 1) else c for c in evidence.commits
    ]


def produced(evidence: Evidence, event_id: str) -> Produced:
    return next(p for p in evidence.produced if p.value is not None and p.value["event_id"] == event_id)


def move_push(evidence: Evidence, push: Push, at: int) -> None:
    """A push, and with it its record, at another time."""
    evidence.pushes = numbered([replace(p, at_ms=BASE + at) if p is push else p for p in evidence.pushes])
    evidence.results = [
        replace(r, at_ms=BASE + at + 5) if r.value.get("pid") == push.apns_id else r for r in evidence.results
    ]


def test_a_good_run_has_no_findings() -> None:
    report = judge(good_run())
    assert report.findings == [], as_text(report)
    assert report.figures["doubled"] == 1
    assert report.figures["doubled_by"] == {"kill w1": 1}


# The falsifications: what is broken, and what must be named: kind, event, user, device.


def lose_a_record(evidence: Evidence) -> None:
    evidence.results.remove(record_of(evidence, "m3", "eve"))


def leave_a_device_parked(evidence: Evidence) -> None:
    pid = push_of(evidence, "m1", "a2").apns_id
    record = next(record for record in evidence.results if record.value.get("pid") == pid)
    evidence.pushes = numbered([push for push in evidence.pushes if push.apns_id != pid])
    evidence.results.remove(record)
    evidence.results.append(replace(record, value={**record.value, "verdict": "parked"}))


def leave_a_partition(evidence: Evidence) -> None:
    _, end = evidence.run.ends[EVENTS]["0"]
    evidence.run.ends[EVENTS]["0"] = (end - 1, end)
    evidence.commits.pop(max(i for i, c in enumerate(evidence.commits) if c.topic == EVENTS))


def end_badly(evidence: Evidence) -> None:
    evidence.exits = [replace(end, code=75) if end.last and end.worker == "w2" else end for end in evidence.exits]


def contradict_a_verdict(evidence: Evidence) -> None:
    record = record_of(evidence, "m6", "dan")
    evidence.results.append(replace(record, value={**record.value, "verdict": "rejected"}))


def forget_a_device(evidence: Evidence) -> None:
    push = push_of(evidence, "m1", "a2")
    evidence.results = [r for r in evidence.results if r.value.get("pid") != push.apns_id]


def invent_an_outcome(evidence: Evidence) -> None:
    record = record_of(evidence, "m3", "eve")
    evidence.results.remove(record)
    value = {**record.value, "verdict": "accepted", "device": "x", "pid": "00000000-0000-0000-0000-000000000000"}
    evidence.results.append(replace(record, value=value))


def invite_the_sender(evidence: Evidence) -> None:
    record = record_of(evidence, "m3", "eve")
    evidence.results.append(replace(record, value={**record.value, "uid": "dan"}))


def drop_a_dead_letter(evidence: Evidence) -> None:
    evidence.dead.clear()


def forget_feedback(evidence: Evidence) -> None:
    evidence.feedback.clear()


def double_without_reason(evidence: Evidence) -> None:
    push = push_of(evidence, "m6")
    evidence.pushes = numbered([*evidence.pushes, replace(push, at_ms=push.at_ms + 400)])


def double_what_was_refused(evidence: Evidence) -> None:
    """m13 was refused before the kill and not in flight at it, so nobody may send it twice."""
    push = push_of(evidence, "m13")
    evidence.pushes = numbered([*evidence.pushes, replace(push, connection=2, at_ms=push.at_ms + 3)])
    evidence.run.single = False
    evidence.instants = [i for i in evidence.instants if i.what != "revoked"]


def double_long_before_the_kill(evidence: Evidence) -> None:
    """Only the last second before a kill, and what was in flight, may go again."""
    push = next(push for push in evidence.pushes if push.msg_id == "m12")
    before = replace(push, at_ms=BASE + KILL - 1500)
    evidence.produced = [
        replace(p, at_ms=BASE + KILL - 1600) if p.value and p.value.get("msg_id") == "m12" else p
        for p in evidence.produced
    ]
    evidence.pushes = numbered([before if p is push else p for p in evidence.pushes])


def reach_the_former_owner(evidence: Evidence) -> None:
    move_push(evidence, push_of(evidence, "m9"), 19_000)


def keep_a_former_token(evidence: Evidence) -> None:
    bind = next(p for p in evidence.produced if p.value and p.value.get("token", {}).get("bind_ver") == 2)
    settle(evidence, USER_STATE, bind.offset, 24_000)
    old = push_of(evidence, "m6").token
    push = push_of(evidence, "m11")
    evidence.pushes = [replace(p, token=old, at_ms=BASE + 25_400) if p is push else p for p in evidence.pushes]
    evidence.pushes = numbered(evidence.pushes)


def call_a_rebind_a_move(evidence: Evidence) -> None:
    push = push_of(evidence, "m11")
    evidence.pushes = numbered([p for p in evidence.pushes if p is not push])
    record = record_of(evidence, "m11", "dan")
    value = {**record.value, "verdict": "suppressed", "reason": "token_moved"}
    evidence.results = [replace(r, value=value) if r is record else r for r in evidence.results]


def push_what_was_recalled(evidence: Evidence) -> None:
    move_push(evidence, push_of(evidence, "m4"), 7_300)


def push_what_was_read(evidence: Evidence) -> None:
    move_push(evidence, push_of(evidence, "m5"), 9_500)


def push_after_its_time(evidence: Evidence) -> None:
    move_push(evidence, push_of(evidence, "m6"), 12_500)


def push_what_was_acknowledged(evidence: Evidence) -> None:
    record = record_of(evidence, "m7", "fay")
    token = "f1" * 32
    push = replace(push_of(evidence, "m6"), msg_id="m7", uid="fay", token=token, apns_id="p7", at_ms=BASE + 18_000)
    evidence.pushes = numbered([*evidence.pushes, replace(push, badge=None)])
    value = {**record.value, "verdict": "accepted", "pid": "p7"}
    evidence.results = [replace(r, value=value) if r is record else r for r in evidence.results]


def push_in_spite_of_an_early_ack(evidence: Evidence) -> None:
    """Nobody had read the ack yet, and nothing was wrong that would have kept anybody from it."""
    push_what_was_acknowledged(evidence)
    ack = produced(evidence, "k7")
    evidence.commits = [
        replace(c, at_ms=BASE + 90_000) if c.topic == USER_STATE and c.offset > ack.offset else c
        for c in evidence.commits
    ]
    evidence.pushes = numbered([replace(p, at_ms=BASE + 18_500) if p.apns_id == "p7" else p for p in evidence.pushes])


def count_twice(evidence: Evidence) -> None:
    evidence.run.badges["bob"] = 2


def keep_a_recalled_one(evidence: Evidence) -> None:
    evidence.run.badges["cid"] = 1


def end_with_an_older_number(evidence: Evidence) -> None:
    evidence.pushes = [replace(p, badge=2) if p.msg_id == "m3" and p.token[:2] == "a2" else p for p in evidence.pushes]
    evidence.pushes = [replace(p, badge=3) if p.msg_id == "m2" and p.token[:2] == "a2" else p for p in evidence.pushes]


def turn_the_order(evidence: Evidence) -> None:
    for number, at in ((1, 2055), (2, 1055)):
        move_push(evidence, push_of(evidence, f"m{number}", "a1"), at)
    badges = {"m1": 2, "m2": 1}
    evidence.pushes = [
        replace(p, badge=badges[p.msg_id]) if p.msg_id in badges and p.token[:2] == "a1" else p for p in evidence.pushes
    ]


def open_two_streams(evidence: Evidence) -> None:
    for number, at in ((1, 2035), (2, 2035 + DELAY // 2)):
        move_push(evidence, push_of(evidence, f"m{number}", "a1"), at)


def roll_out_slowly(evidence: Evidence) -> None:
    evidence.run.fault = "rolling"
    evidence.instants.append(Instant(BASE + 9_500, "term", "w2", breaks=True))
    value = produced(evidence, "e-m6").value
    assert value is not None
    value["expire_at_ms"] = BASE + 90_000
    # One second more than plain consumers waited, and the two that a worker has.
    evidence.plain.append(Delay(BASE + 9_600, EVENTS, 0, 2_000))
    move_push(evidence, push_of(evidence, "m6"), 14_500)


def test_a_rollout_may_last_as_long_as_for_plain_consumers() -> None:
    evidence = good_run()
    roll_out_slowly(evidence)
    evidence.plain.append(Delay(BASE + 9_000, EVENTS, 0, 4_000))
    assert "slow" not in {finding.kind for finding in found(evidence)}


def find_apns_late(evidence: Evidence) -> None:
    evidence.instants.append(Instant(BASE + 9_100, "apns-start"))
    value = produced(evidence, "e-m6").value
    assert value is not None
    value["expire_at_ms"] = BASE + 90_000
    move_push(evidence, push_of(evidence, "m6"), 19_200)


def decide_before_all_is_applied(evidence: Evidence) -> None:
    """The move lies between m10 and m11, which is pushed before a worker has applied user state again."""
    move_to_a_mirror(evidence, 20_500)
    evidence.instants = [replace(i, at_ms=BASE + 23_000) if i.what == "resumed" else i for i in evidence.instants]


def count_an_outcome_twice(evidence: Evidence) -> None:
    counted = statistics.records(Facts(evidence))
    evidence.run.stats = dict(counted) | {"accepted": counted["accepted"] + 1}


Falsify = Callable[[Evidence], None]
CASES: list[tuple[Falsify, tuple[str, str, str, str]]] = [
    (lose_a_record, ("lost", "e-m3", "eve", "")),
    (leave_a_device_parked, ("lost", "e-m1", "ann", "ann-2")),
    (leave_a_partition, ("stuck", "e-m14", "", "")),
    (end_badly, ("exit", "", "", "")),
    (contradict_a_verdict, ("verdict", "e-m6", "dan", "dan-1")),
    (forget_a_device, ("unrecorded", "e-m1", "ann", "ann-2")),
    (invent_an_outcome, ("invented", "e-m3", "eve", "x")),
    (invite_the_sender, ("uninvited", "e-m3", "dan", "")),
    (drop_a_dead_letter, ("dead-letter", "", "", "")),
    (forget_feedback, ("feedback", "", "gus", "gus-1")),
    (double_without_reason, ("doubled", "e-m6", "dan", "dan-1")),
    (double_what_was_refused, ("doubled", "e-m13", "dan", "dan-1")),
    (double_long_before_the_kill, ("doubled", "e-m12", "dan", "dan-1")),
    (reach_the_former_owner, ("wrong-person", "e-m9", "old", "phone")),
    (keep_a_former_token, ("old-token", "e-m11", "dan", "dan-1")),
    (call_a_rebind_a_move, ("token-moved", "e-m11", "dan", "dan-1")),
    (push_what_was_recalled, ("recalled", "e-m4", "cid", "cid-1")),
    (push_what_was_read, ("read", "e-m5", "cid", "cid-1")),
    (push_after_its_time, ("expired", "e-m6", "dan", "dan-1")),
    (push_what_was_acknowledged, ("acked", "e-m7", "fay", "fay-1")),
    (push_in_spite_of_an_early_ack, ("acked", "e-m7", "fay", "fay-1")),
    (count_twice, ("badge", "", "bob", "")),
    (keep_a_recalled_one, ("badge", "", "cid", "")),
    (end_with_an_older_number, ("old-badge", "", "ann", "ann-2")),
    (turn_the_order, ("order", "e-m1", "ann", "ann-1")),
    (open_two_streams, ("overlap", "e-m2", "ann", "ann-1")),
    (count_an_outcome_twice, ("statistics", "", "", "")),
    (decide_before_all_is_applied, ("move", "e-m11", "dan", "dan-1")),
    (find_apns_late, ("slow", "e-m6", "dan", "dan-1")),
    (roll_out_slowly, ("slow", "e-m6", "dan", "dan-1")),
]


@pytest.mark.parametrize(("falsify", "named"), CASES, ids=[case[0].__name__ for case in CASES])
def test_what_is_falsified_is_named_and_nothing_else(falsify: Falsify, named: tuple[str, str, str, str]) -> None:
    evidence = good_run()
    falsify(evidence)
    findings = found(evidence)
    assert [(f.kind, f.event_id, f.uid, f.device) for f in findings] == [named], findings
    assert findings[0].evidence
    assert named[0] in as_text(judge(evidence))


def test_numbers_that_equal_the_results_are_no_finding() -> None:
    evidence = good_run()
    evidence.run.stats = dict(statistics.records(Facts(evidence)))
    assert sum(evidence.run.stats.values()) > 10
    assert found(evidence) == []


def test_every_kind_of_finding_is_proven() -> None:
    assert {named[0] for _, named in CASES} == set(KINDS)


def test_evidence_is_judged_the_same_from_its_files(tmp_path: Path) -> None:
    evidence = good_run()
    count_twice(evidence)
    evidence.save(tmp_path)
    again = Evidence.load(tmp_path)
    again.pushes = evidence.pushes
    assert found(again) == found(evidence)


def test_an_accepted_record_without_pid_is_of_its_devices_push() -> None:
    for device, kinds in (("ann-2", []), ("x", ["unrecorded", "invented"])):
        evidence = good_run()
        pid = push_of(evidence, "m1", "a2").apns_id
        for record in [r for r in evidence.results if r.value.get("pid") == pid]:
            value = {key: value for key, value in record.value.items() if key != "pid"}
            evidence.results.remove(record)
            evidence.results.append(replace(record, value={**value, "device": device}))
        assert sorted(finding.kind for finding in found(evidence)) == sorted(kinds)


def test_a_number_sent_once_more_puts_an_older_one_right() -> None:
    evidence = good_run()
    end_with_an_older_number(evidence)
    assert [finding.kind for finding in found(evidence)] == ["old-badge"]
    old = push_of(evidence, "m3", "a2")
    again = replace(old, at_ms=old.at_ms + 300, apns_id="again", msg_id="", uid="", badge=3)
    evidence.pushes = numbered([*evidence.pushes, again])
    record = record_of(evidence, "m3", "ann")
    told = {**record.value, "device": "ann-2", "pid": "again"}
    evidence.results.append(replace(record, at_ms=again.at_ms + 5, value=told))
    assert [finding.kind for finding in found(evidence)] == []


def test_while_redis_takes_no_writes_a_recall_is_settled_by_its_offset_alone() -> None:
    evidence = good_run()
    push_what_was_recalled(evidence)
    evidence.instants.append(Instant(BASE + 5_000, "redis-full"))
    recall = produced(evidence, "e-r4")
    settle(evidence, EVENTS, recall.offset, 7_000)
    assert [finding.kind for finding in found(evidence)] == []
    settle(evidence, EVENTS, recall.offset, 6_100)
    assert [finding.kind for finding in found(evidence)] == ["recalled"]


def test_a_recall_that_is_parked_is_settled_by_its_record_alone() -> None:
    """Its offset is committed when it is parked; the user's part of it is done later."""
    evidence = good_run()
    push_what_was_recalled(evidence)
    recall = record_of(evidence, "r4", "cid")
    evidence.results.append(replace(recall, value={**recall.value, "verdict": "parked"}))
    evidence.results = [replace(r, at_ms=BASE + 7_000) if r is recall else r for r in evidence.results]
    assert [finding.kind for finding in found(evidence)] == []
    evidence.results = [r for r in evidence.results if r.value["verdict"] != "parked"]
    assert [finding.kind for finding in found(evidence)] == ["recalled"]


def test_two_copies_may_be_pushed_at_once_if_redis_refused_the_note_of_one() -> None:
    evidence = good_run()
    push = push_of(evidence, "m6")
    parked = record_of(evidence, "m6", push.uid)
    parked = replace(parked, at_ms=push.at_ms - 3_000, value={**parked.value, "verdict": "parked"})
    evidence.results.append(parked)
    full, revoked, room = (
        Instant(push.at_ms - 4_000, "redis-full"),
        Instant(push.at_ms - 2_500, "revoked", "w1", breaks=True),
        Instant(push.at_ms - 2_000, "redis-room"),
    )

    def is_lawful(instants: list[Instant], later_ms: int = 44) -> bool:
        evidence.instants = instants
        later = replace(push, connection=2, at_ms=push.at_ms + later_ms)
        return duplicates.reason(Facts(evidence), push, later) is not None

    assert is_lawful([full, revoked, room])
    assert not is_lawful([full, revoked, room], later_ms=1_500)
    assert not is_lawful([full, room])
    assert not is_lawful([revoked, room])
    assert not is_lawful([full, replace(room, at_ms=push.at_ms - 3_500), revoked])


def test_what_a_resumed_worker_sends_within_a_second_is_lawful() -> None:
    evidence = good_run()
    push = push_of(evidence, "m6")
    evidence.instants.append(Instant(BASE + 20_000, "resume", "w3", breaks=True, resumes=True))
    for late, lawful in ((500, True), (1500, False)):
        later = replace(push, at_ms=BASE + 20_000 + late)
        assert (duplicates.reason(Facts(evidence), push, later) is not None) == lawful


def test_an_answer_that_a_silent_connection_swallowed_may_be_asked_for_again() -> None:
    evidence = good_run()
    push = push_of(evidence, "m6")
    again = replace(push, at_ms=push.at_ms + 5000)
    assert duplicates.reason(Facts(evidence), push, again) is None
    frozen = replace(push, status=None, fault="freeze", apns_id="other", at_ms=push.at_ms + 30)
    evidence.pushes = numbered([*evidence.pushes, frozen])
    assert duplicates.reason(Facts(evidence), push, again) is not None


def test_a_recall_is_for_nobody_if_it_expired_before_the_members_were_read() -> None:
    recall = next(event for event in Facts(good_run()).by_event_id.values() if event.kind == "revoke")
    kept = {**recall.value, "revoke": {**recall.value["revoke"], "badge": "keep"}}
    to_members = {name: value for name, value in kept.items() if name != "to"}
    late = replace(recall, expire_at_ms=recall.at_ms)
    assert replace(late, value=to_members).is_for_nobody
    assert not replace(recall, value=to_members).is_for_nobody
    assert not replace(late, value={**to_members, "revoke": {**kept["revoke"], "badge": "decrease"}}).is_for_nobody
    assert not replace(late, value={**kept, "to": {"uids": ["cid"]}}).is_for_nobody
