# SPDX-License-Identifier: Apache-2.0
"""Nothing lost, nothing stuck, one verdict each, and every one of them true."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.checks import duplicates
from chaos.evidence import CHUNKS, EVENTS, PARKED, Read
from chaos.facts import PARKED as WAITS
from chaos.facts import Event, Facts
from chaos.findings import Finding

# A worker's drain time and the time to leave its group.
EXIT_MS = 15_000


def check(facts: Facts) -> Iterator[Finding]:
    yield from lost(facts)
    yield from left_parked(facts)
    yield from stuck(facts)
    yield from exits(facts)
    yield from verdicts(facts)
    yield from unrecorded(facts)
    yield from invented(facts)
    yield from uninvited(facts)
    yield from dead_letters(facts)
    yield from feedback(facts)


def settled(facts: Facts, event: Event) -> int | None:
    """When the first of the event's records was committed."""
    times = [
        time
        for place in facts.places[event.event_id]
        if (time := facts.settled_ms(EVENTS, place.partition, place.offset)) is not None
    ]
    return min(times, default=None)


def lost(facts: Facts) -> Iterator[Finding]:
    for event in facts.by_event_id.values():
        at = settled(facts, event)
        # An event that expired before its members were read has one record, without a user.
        if at is None or facts.results.get((event.event_id, "")):
            continue
        for uid in sorted(event.recipients):
            if not facts.results.get((event.event_id, uid)):
                pushed = [
                    push
                    for pushes in facts.accepted.values()
                    for push in pushes
                    if push.msg_id == event.msg_id and push.uid == uid
                ]
                fate = f"APNs accepted {len(pushed)} pushes of it" if pushed else "and it was not pushed"
                yield Finding(
                    "lost",
                    f"no final record, though the offset was committed at {facts.clock(at)}; {fate}",
                    event.event_id,
                    uid,
                    evidence=(facts.event_text(event), *(facts.push_text(push) for push in pushed)),
                )


def left_parked(facts: Facts) -> Iterator[Finding]:
    """A parked device of a user who has final records ends with its own, or with that of the whole user."""
    parked = {
        (record.value["event_id"], record.value["uid"], record.value["device"]): record
        for record in facts.evidence.results
        if record.value.get("verdict") == WAITS and record.value.get("device")
    }
    for (event_id, uid, device), record in parked.items():
        ended = {final.value.get("device", "") for final in facts.results.get((event_id, uid), [])}
        if ended and not ended & {"", device}:
            text = "the device was parked, and has no final record"
            yield Finding("lost", text, event_id, uid, device, (facts.record_text(record),))


def stuck(facts: Facts) -> Iterator[Finding]:
    for topic, partitions in facts.evidence.run.ends.items():
        for partition, (committed, end) in partitions.items():
            if committed >= end:
                continue
            at = next(
                (
                    record
                    for record in facts.evidence.produced
                    if (record.topic, record.partition, record.offset) == (topic, int(partition), committed)
                ),
                None,
            )
            value = (at.value or {}) if at else {}
            yield Finding(
                "stuck",
                f"{topic}[{partition}] is committed up to {committed} of {end}",
                value.get("event_id", ""),
                value.get("uid", ""),
                evidence=(f"the record there: {value}"[:400],),
            )


def exits(facts: Facts) -> Iterator[Finding]:
    # Not drained in time is a lawful end only while something is broken, and that is for the run's own end to forbid.
    for end in facts.evidence.exits:
        if end.killed:
            continue
        allowed = (0,) if end.last else (0, 75)
        if end.asked_ms is None:
            text = f"{end.worker} ended by itself with code {end.code}"
        elif end.code not in allowed:
            text = f"{end.worker} ended with code {end.code}, {end.at_ms - end.asked_ms} ms after SIGTERM"
        elif end.at_ms - end.asked_ms > EXIT_MS:
            text = f"{end.worker} took {end.at_ms - end.asked_ms} ms to end"
        else:
            continue
        yield Finding("exit", text, evidence=(facts.clock(end.at_ms), end.tail))


def verdicts(facts: Facts) -> Iterator[Finding]:
    for (event_id, uid), records in facts.results.items():
        event, last = facts.by_event_id.get(event_id), max(record.at_ms for record in records)
        is_anew = event is not None and duplicates.decided_anew(facts, event, uid, last)
        by_device: dict[str, list[Read]] = defaultdict(list)
        for record in records:
            if not facts.is_badge_alone(record):
                by_device[record.value.get("device", "")].append(record)
        for device, several in by_device.items():
            kinds = {(record.value["verdict"], record.value.get("pid")) for record in several}
            if len(kinds) > 1 and (is_anew or _all_pushed_again(facts, several)):
                facts.allowed["verdict"] += len(kinds) - 1
            elif len(kinds) > 1 and not _excused(facts, several):
                said = ", ".join(sorted(f"{verdict}" for verdict, _ in kinds))
                yield Finding(
                    "verdict",
                    f"{len(kinds)} verdicts: {said}",
                    event_id,
                    uid,
                    device,
                    tuple(facts.record_text(record) for record in several),
                )
        if "" in by_device and len(by_device) > 1 and not _excused(facts, records):
            if is_anew:
                facts.allowed["verdict"] += 1
                continue
            yield Finding(
                "verdict",
                "a verdict of the user beside one of a device",
                event_id,
                uid,
                evidence=tuple(facts.record_text(record) for record in records),
            )


def _all_pushed_again(facts: Facts, records: list[Read]) -> bool:
    """Each record is of an accepted push, and a failover may have lost the mark of all but the last."""
    if any(record.value["verdict"] != "accepted" for record in records):
        return False
    pids = {record.value.get("pid", "") for record in records}
    pushes = [facts.accepted[pid][0] for pid in pids if pid in facts.accepted]
    pushes.sort(key=lambda push: push.at_ms)
    return len(pushes) == len(pids) and all(duplicates.forgotten(facts, push) for push in pushes[1:])


def _excused(facts: Facts, records: list[Read]) -> bool:
    """Whether what was in flight at an incident was decided anew after it: then the state may have changed between."""
    times = sorted(record.at_ms for record in records)
    return facts.broke_between(times[0] - 1000, times[-1])


def unrecorded(facts: Facts) -> Iterator[Finding]:
    accepted = [record.value for record in facts.evidence.results if record.value.get("verdict") == "accepted"]
    recorded = {value.get("pid") for value in accepted}
    # What was accepted before a crash, of a token that was bound anew since: the record names the device alone.
    nameless = {_place(value) for value in accepted if "pid" not in value}
    for apns_id, pushes in facts.accepted.items():
        push = pushes[0]
        event = facts.events.get(push.msg_id)
        if apns_id in recorded or event is None or (event.event_id, push.uid, facts.device_of(push)) in nameless:
            continue
        if settled(facts, event) is None or _decided_anew(facts, event, push.uid, push.at_ms):
            continue
        yield Finding(
            "unrecorded",
            "APNs accepted it, and no accepted record has its pid",
            event.event_id,
            push.uid,
            facts.device_of(push),
            (
                facts.push_text(push),
                *(facts.record_text(record) for record in facts.results.get((event.event_id, push.uid), [])),
            ),
        )


def _decided_anew(facts: Facts, event: Event, uid: str, at_ms: int) -> bool:
    """Accepted in an incident's last second, then denied or sent by another token: nobody can know of the first."""
    if not facts.broke_between(at_ms - 500, at_ms + 1000):
        return False
    later = facts.results.get((event.event_id, uid), [])
    return any(record.at_ms > at_ms for record in later)


def _place(value: dict) -> tuple[str, str, str]:
    return value.get("event_id", ""), value.get("uid", ""), value.get("device", "")


def invented(facts: Facts) -> Iterator[Finding]:
    pushed = set()
    for pushes in facts.accepted.values():
        event = facts.events.get(pushes[0].msg_id)
        if event is not None:
            pushed.add((event.event_id, pushes[0].uid, facts.device_of(pushes[0])))
    for (event_id, uid), records in facts.results.items():
        for record in records:
            value = record.value
            if value["verdict"] != "accepted":
                continue
            if value["pid"] not in facts.accepted if "pid" in value else _place(value) not in pushed:
                yield Finding(
                    "invented",
                    "an accepted record of a push that APNs never accepted",
                    event_id,
                    uid,
                    record.value.get("device", ""),
                    (facts.record_text(record),),
                )


def uninvited(facts: Facts) -> Iterator[Finding]:
    for (event_id, uid), records in facts.results.items():
        event = facts.by_event_id.get(event_id)
        if event is None and not all(facts.is_badge_alone(record) for record in records):
            yield Finding(
                "uninvited", "a record of an unknown event", event_id, uid, evidence=(facts.record_text(records[0]),)
            )
        elif event is not None and uid and uid not in event.recipients:
            yield Finding(
                "uninvited",
                "a record of one who is no recipient",
                event_id,
                uid,
                evidence=(facts.record_text(records[0]),),
            )
    for pushes in facts.accepted.values():
        event = facts.events.get(pushes[0].msg_id)
        if event is not None and pushes[0].uid not in event.recipients:
            yield Finding(
                "uninvited",
                "a push for one who is no recipient",
                event.event_id,
                pushes[0].uid,
                evidence=(facts.push_text(pushes[0]),),
            )


def dead_letters(facts: Facts) -> Iterator[Finding]:
    names = ("carillon-topic", "carillon-partition", "carillon-offset")
    found = {tuple(read.headers.get(name) for name in names) for read in facts.evidence.dead}
    for topic, partition, offset in sorted(place for place in found if place[0] in (CHUNKS, PARKED)):
        text = f"{topic}[{partition}]@{offset}"
        yield Finding("dead-letter", "a record of the workers' own topics is a dead letter", evidence=(text,))
    for record in facts.evidence.produced:
        place = (record.topic, str(record.partition), str(record.offset))
        text = f"{record.topic}[{record.partition}]@{record.offset}"
        if record.value is None and place not in found:
            if facts.settled_ms(record.topic, record.partition, record.offset) is not None:
                yield Finding("dead-letter", "a bad record is committed and in no dead letter", evidence=(text,))
        elif record.value is not None and place in found:
            yield Finding(
                "dead-letter",
                "a good record is a dead letter",
                record.value.get("event_id", ""),
                record.value.get("uid", ""),
                evidence=(text,),
            )


def feedback(facts: Facts) -> Iterator[Finding]:
    gone = {push.token for push in facts.evidence.pushes if push.status == 410}
    told = {read.value.get("token"): read for read in facts.evidence.feedback}
    for token, read in told.items():
        if token not in gone:
            yield Finding(
                "feedback",
                "a token was removed that APNs said nothing of",
                uid=read.value.get("uid", ""),
                device=read.value.get("device", ""),
                evidence=(facts.record_text(read),),
            )
    for token in sorted(gone - set(told)):
        bind = (facts.binds_of_token.get(token) or [None])[-1]
        yield Finding(
            "feedback",
            "APNs answered 410, and nobody was told that the token is gone",
            uid=bind.uid if bind else "",
            device=bind.device if bind else "",
            evidence=(f"token {token[:8]}…",),
        )
