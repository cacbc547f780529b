# SPDX-License-Identifier: Apache-2.0
"""The order of a conversation, one push in flight per device, and how late things were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.checks import duplicates
from chaos.evidence import Instant, Push
from chaos.facts import Event, Facts
from chaos.findings import Finding
from chaos.fleet import TOLD

# Beyond what plain consumers wait that are restarted in the same way.
ROLLOUT_MS = 2000
# Five seconds until APNs is found to be back, and as many for all that waited.
RETURN_MS = 10_000
# Timers of the simulator are exact to a millisecond, times are whole ones.
ROUNDING_MS = 2
# The end of a burst comes so late on a busy machine.
BURST_MS = 500
# How long an incident is held to account for what is late.
INCIDENT_MS = 15_000
# What nothing waits for: the machine's own pauses.
ELSEWHERE_MS = 3000
# Orders of which a failover may come.
GROUPS = ("cluster", "sentinel")


def check(facts: Facts) -> Iterator[Finding]:
    yield from order(facts)
    yield from overlap(facts)
    if facts.evidence.run.fault == "rolling":
        yield from rollout(facts)
    yield from returned(facts)
    yield from taken_over(facts)
    yield from elsewhere(facts)


def first_tries(facts: Facts) -> dict[str, Push]:
    """The first line of each apns-id."""
    found: dict[str, Push] = {}
    for push in facts.evidence.pushes:
        found.setdefault(push.apns_id, push)
    return found


def order(facts: Facts) -> Iterator[Finding]:
    first = first_tries(facts)
    live = {device.uid for device in facts.evidence.run.devices if device.state}
    newest: dict[tuple[str, str], tuple[Event, Push]] = {}
    for push in facts.evidence.pushes:
        event = facts.events.get(push.msg_id)
        if not push.accepted or event is None or push is not facts.accepted[push.apns_id][0]:
            continue
        key = (push.token, event.conv)
        before = newest.get(key)
        # The same message once more is no disorder: the phone may have gone from one member of the group to another.
        if before is None or event.offset >= before[0].offset:
            newest[key] = (event, push)
            continue
        # A resend, a fallback from the long connection and what an incident made to be read again may come later.
        if first[push.apns_id] is not push or push.uid in live or facts.broke_between(event.at_ms, push.at_ms):
            continue
        # The push waited for its burst's end.
        is_soon = push.at_ms - before[1].at_ms <= facts.evidence.run.burst_ms + BURST_MS
        if facts.evidence.run.burst_ms and is_soon and never_waits(before[0], push.uid):
            continue
        if duplicates.forgotten(facts, push) or duplicates.decided_anew(facts, event, push.uid, push.at_ms):
            facts.allowed["order"] += 1
            continue
        yield Finding(
            "order",
            f"pushed {push.at_ms - before[1].at_ms} ms after {before[0].msg_id}, which is newer; neither was a resend",
            event.event_id,
            push.uid,
            facts.device_of(push),
            (facts.event_text(event), facts.push_text(push), facts.event_text(before[0]), facts.push_text(before[1])),
        )


def never_waits(event: Event, uid: str) -> bool:
    """Whether the event goes before a burst of its conversation has ended: revokes, forced pushes and mentions do."""
    force, mention = event.value["push"].get("force", {}), event.value.get("mention", {})
    is_forced = force.get("mode") == "all" or uid in force.get("uids", [])
    return event.kind == "revoke" or is_forced or bool(mention.get("all")) or uid in mention.get("uids", [])


def overlap(facts: Facts) -> Iterator[Finding]:
    """Two streams of one process open at once for a token; with several processes those of one connection."""
    run = facts.evidence.run
    if run.delay_ms <= ROUNDING_MS:
        return
    last: dict[tuple[str, int], Push] = {}
    for push in facts.evidence.pushes:
        if not push.accepted:
            continue
        key = (push.token, 0 if run.single else push.connection)
        before = last.get(key)
        last[key] = push
        if before is not None and push.at_ms - run.delay_ms < before.at_ms - ROUNDING_MS:
            event = facts.events.get(push.msg_id)
            yield Finding(
                "overlap",
                f"opened before the one before it was answered, {push.at_ms - before.at_ms} ms apart",
                event.event_id if event else "",
                push.uid,
                facts.device_of(push),
                (facts.push_text(before), facts.push_text(push)),
            )


def latencies(facts: Facts) -> list[tuple[int, Push, Event]]:
    """From the write to Kafka to the first acceptance, in ms; not of users whom live connections serve first."""
    live = {device.uid for device in facts.evidence.run.devices if device.state}
    found: list[tuple[int, Push, Event]] = []
    for pushes in facts.accepted.values():
        event = facts.events.get(pushes[0].msg_id)
        if event is not None and pushes[0].uid not in live:
            found.append((pushes[0].at_ms - event.at_ms, pushes[0], event))
    return found


def returned(facts: Facts) -> Iterator[Finding]:
    """APNs is back: what waited for it goes soon. Judged where nothing else was done from then on."""
    for instant in facts.evidence.instants:
        if instant.what != "apns-start":
            continue
        waited = _waited_past(facts, instant.at_ms)
        if not waited or any(instant.at_ms - INCIDENT_MS < other.at_ms for other in _others(facts, waited)):
            continue
        _, push, event = max(waited, key=lambda item: item[1].at_ms)
        yield _slow(
            facts,
            f"{len(waited)} pushes that waited for APNs went more than {RETURN_MS} ms after it was back; "
            f"the last {push.at_ms - instant.at_ms} ms",
            push,
            event,
        )


def taken_over(facts: Facts) -> Iterator[Finding]:
    """A replica is master: what waited for it goes soon. Judged where nothing but Redis' servers was touched."""
    for failover in facts.failovers:
        waited = _waited_past(facts, failover.at_ms)
        others = _others_than_redis(facts, waited)
        if not waited or any(failover.at_ms - INCIDENT_MS < other.at_ms for other in others):
            continue
        _, push, event = max(waited, key=lambda item: item[1].at_ms)
        yield _slow(
            facts,
            f"{len(waited)} pushes that waited for Redis went more than {RETURN_MS} ms after {failover.new} took over "
            f"from {failover.old} at {facts.clock(failover.at_ms)}",
            push,
            event,
        )


def _waited_past(facts: Facts, at_ms: int) -> list[tuple[int, Push, Event]]:
    """What was written before this moment and pushed only long after it."""
    return [item for item in latencies(facts) if item[2].at_ms < at_ms and item[1].at_ms > at_ms + RETURN_MS]


def _slow(facts: Facts, what: str, push: Push, event: Event) -> Finding:
    return Finding(
        "slow",
        what,
        event.event_id,
        push.uid,
        facts.device_of(push),
        (facts.event_text(event), facts.push_text(push)),
    )


def elsewhere(facts: Facts) -> Iterator[Finding]:
    """A master of a Cluster is away: whose keys are all with others does not wait for it."""
    for failover in facts.failovers:
        start = max((end for _, end in failover.spans if end < failover.at_ms), default=None)
        if facts.evidence.run.redis != "cluster" or start is None:
            continue
        late = [
            item
            for item in latencies(facts)
            if start <= item[2].at_ms <= failover.at_ms
            and item[0] > ELSEWHERE_MS
            and not any(failover.serves(slot) for slot in facts.slots_of(item[1].uid, item[2]))
        ]
        others = _others_than_redis(facts, late)
        if not late or any(start - INCIDENT_MS < other.at_ms for other in others):
            continue
        worst, push, event = max(late, key=lambda item: item[0])
        yield _slow(
            facts,
            f"{len(late)} pushes waited for {failover.old}, which serves none of their keys; the worst {worst} ms",
            push,
            event,
        )


def _others(facts: Facts, waited: list[tuple[int, Push, Event]]) -> list[Instant]:
    """What else was done, up to the last of these pushes."""
    end = max(push.at_ms for _, push, _ in waited)
    return [
        instant for instant in facts.evidence.instants if not instant.what.startswith("apns") and instant.at_ms <= end
    ]


def _others_than_redis(facts: Facts, waited: list[tuple[int, Push, Event]]) -> list[Instant]:
    """The same without what was done to Redis' servers; nothing waited: nothing."""
    return [other for other in _others(facts, waited) if not other.what.startswith(GROUPS)] if waited else []


def worst_of_incidents(facts: Facts) -> dict[str, int]:
    """The worst latency of what was produced around each incident."""
    worst: dict[str, int] = defaultdict(int)
    asked = [instant for instant in facts.evidence.instants if instant.what not in TOLD.values()]
    for late, _, event in latencies(facts):
        for instant in asked:
            if instant.at_ms - 2000 <= event.at_ms <= instant.at_ms + INCIDENT_MS:
                name = f"{facts.clock(instant.at_ms)} {instant.what} {instant.target}".strip()
                worst[name] = max(worst[name], late)
    return dict(worst)


def plain_of_incidents(facts: Facts) -> dict[str, int]:
    """The same of plain consumers."""
    if not facts.evidence.plain:
        return {}
    asked = [instant for instant in facts.evidence.instants if instant.what == "term"]
    return {f"{facts.clock(instant.at_ms)} term {instant.target}": plain_ms(facts, instant) for instant in asked}


def unowned_ms(facts: Facts) -> int:
    """The longest span, since the traffic began, in which the workers together held fewer than all partitions."""
    held: dict[str, int] = {}
    longest, since = 0, None
    for change in sorted(facts.evidence.assignments, key=lambda change: change.at_ms):
        held[change.worker] = change.partitions
        whole = sum(held.values()) >= facts.evidence.run.partitions
        if whole and since is not None:
            longest = max(longest, change.at_ms - since)
            since = None
        elif not whole and since is None and change.at_ms >= facts.evidence.run.base_ms:
            since = change.at_ms
    return longest


def rollout(facts: Facts) -> Iterator[Finding]:
    for instant in facts.evidence.instants:
        if instant.what == "term":
            yield from _rollout_of(facts, instant, ROLLOUT_MS + plain_ms(facts, instant))


def plain_ms(facts: Facts, instant: Instant) -> int:
    """How long plain consumers let a record wait when they were restarted at that time."""
    start, end = instant.at_ms - 2000, instant.at_ms + INCIDENT_MS
    return max((delay.waited_ms for delay in facts.evidence.plain if start <= delay.at_ms <= end), default=0)


def _rollout_of(facts: Facts, instant: Instant, allowed: int) -> Iterator[Finding]:
    start, end = instant.at_ms - 2000, instant.at_ms + INCIDENT_MS
    late = [item for item in latencies(facts) if start <= item[2].at_ms <= end and item[0] > allowed]
    if late:
        worst, push, event = max(late, key=lambda item: item[0])
        yield _slow(
            facts,
            f"{len(late)} pushes took more than {allowed} ms when {instant.target} was replaced; the worst {worst} ms",
            push,
            event,
        )
