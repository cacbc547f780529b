# SPDX-License-Identifier: Apache-2.0
"""A push twice only where nobody can know what became of the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from chaos.evidence import Push
from chaos.facts import Event, Facts
from chaos.findings import Finding

# What APNs accepted so long before an incident may not have been written down anywhere yet.
BEFORE_MS = 1000
# What was in flight at the incident is answered so long after it, beyond APNs' own delay: scheduling.
AFTER_MS = 500


def check(facts: Facts) -> Iterator[Finding]:
    for apns_id, pushes in facts.accepted.items():
        for earlier, later in pairwise(pushes):
            if reason(facts, earlier, later) is not None:
                continue
            event = facts.events.get(earlier.msg_id)
            tries = [push for push in facts.evidence.pushes if push.apns_id == apns_id]
            yield Finding(
                "doubled",
                f"accepted again {later.at_ms - earlier.at_ms} ms later; it was in flight at no incident",
                event.event_id if event else "",
                earlier.uid,
                facts.device_of(earlier),
                tuple(facts.push_text(push) for push in tries[:6]),
            )


def reason(facts: Facts, earlier: Push, later: Push) -> str | None:
    """What made the second push lawful; None: nothing."""
    delay = facts.evidence.run.delay_ms
    for instant in facts.breaks:
        if -BEFORE_MS <= earlier.at_ms - instant.at_ms <= delay + AFTER_MS and later.at_ms >= instant.at_ms:
            return f"{instant.what} {instant.target}".strip()
        # A worker that was stopped sends what it held, until it hears that others took over.
        if instant.resumes and earlier.at_ms <= instant.at_ms <= later.at_ms <= instant.at_ms + BEFORE_MS:
            return f"{instant.what} {instant.target}".strip()
    if lost_mark(facts, earlier, later):
        return "failover"
    if is_unnoted_copy(facts, earlier, later):
        return "parked without a note"
    for push in facts.silences:
        if push.connection == earlier.connection and 0 <= push.at_ms - earlier.at_ms + 1 <= BEFORE_MS:
            return f"connection {push.connection} {push.fault}"
    return None


def lost_mark(facts: Facts, earlier: Push, later: Push) -> bool:
    """Whether a failover may have lost the mark of the first push, and its record was read again: after an incident, or
    since it was written twice."""
    event = facts.events.get(earlier.msg_id)
    if not _is_read_again(facts, event, earlier.uid, earlier.at_ms, later.at_ms):
        return False
    start = earlier.at_ms - facts.evidence.run.delay_ms
    return facts.may_be_lost(earlier.uid, start, earlier.at_ms + AFTER_MS, later.at_ms)


def is_unnoted_copy(facts: Facts, earlier: Push, later: Push) -> bool:
    """Whether Redis refused the note that the event is parked, and the event was read again since: then two workers may
    push both copies at the same time, before the mark of one of them."""
    event = facts.events.get(earlier.msg_id)
    if event is None or later.at_ms - earlier.at_ms > facts.evidence.run.delay_ms + AFTER_MS:
        return False
    return any(
        facts.took_no_writes(at_ms) and facts.broke_between(at_ms, earlier.at_ms)
        for at_ms in facts.parked.get((event.event_id, earlier.uid), [])
    )


def decided_anew(facts: Facts, event: Event, uid: str, until_ms: int) -> bool:
    """What was recorded of the user before may have lost its marks in a failover: they follow the records."""
    earlier = [record for record in facts.results.get((event.event_id, uid), []) if record.at_ms < until_ms]
    return bool(earlier) and all(
        _is_read_again(facts, event, uid, record.at_ms, until_ms)
        and facts.may_be_lost(uid, record.at_ms, record.at_ms + AFTER_MS, until_ms)
        for record in earlier
    )


def _is_read_again(facts: Facts, event: Event | None, uid: str, start_ms: int, end_ms: int) -> bool:
    is_repeated = event is not None and len(facts.places[event.event_id]) > 1
    if is_repeated or event is None:
        return is_repeated or facts.broke_between(start_ms, end_ms)
    return facts.broke_between(start_ms, end_ms) and not facts.is_left_behind(event, uid, start_ms, end_ms)


def forgotten(facts: Facts, push: Push) -> bool:
    """The message had been pushed to this device under another pid, and a failover may have lost that mark: the device
    has another token by now."""
    earlier = [
        pushes[0]
        for pushes in facts.accepted.values()
        if (pushes[0].msg_id, pushes[0].uid) == (push.msg_id, push.uid) and pushes[0].at_ms < push.at_ms
    ]
    device = facts.device_of(push)
    return any(facts.device_of(other) == device and lost_mark(facts, other, push) for other in earlier)


def count(facts: Facts) -> tuple[int, dict[str, int]]:
    """All extra pushes, and those of each incident."""
    by_reason: Counter[str] = Counter()
    for pushes in facts.accepted.values():
        for earlier, later in pairwise(pushes):
            by_reason[reason(facts, earlier, later) or "unlawful"] += 1
    return sum(by_reason.values()), dict(by_reason)
