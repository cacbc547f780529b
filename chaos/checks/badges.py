# SPDX-License-Identifier: Apache-2.0
"""Each user's number, computed anew from what was produced (contract section 5, "Badge").

What the client reported last, less what of it was read or recalled after the report, never below nothing; and on top
what was counted and sent after the report and is unread. Messages whose counting hung on something that the harness
cannot know to the millisecond make a span of lawful numbers; all others are exact.

A failover of Redis may lose what the dead master had not copied: a step of the number up, or one down. Whose keys were
there and of whom something was written just then has a wider span (`lossy`); where it was needed, that is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.evidence import Push
from chaos.facts import Event, Facts, Report
from chaos.findings import Finding


@dataclass(frozen=True)
class Number:
    """The lawful numbers of a user, both ends included."""

    low: int
    high: int

    def holds(self, badge: int) -> bool:
        return self.low <= badge <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


def check(facts: Facts) -> Iterator[Finding]:
    of_user = messages_of_users(facts)
    pending = facts.pending_users()
    for uid, badge in facts.evidence.run.badges.items():
        # What is stuck is told as such; what it would have done to the badge cannot be known.
        if uid in pending:
            continue
        number = number_of(facts, uid, of_user.get(uid, []))
        if number.holds(badge):
            continue
        if number_of(facts, uid, of_user.get(uid, []), lossy=True).holds(badge):
            facts.allowed["badge"] += 1
        else:
            counted = [event for event in of_user.get(uid, []) if counts(facts, event, uid)[1]]
            told = ", ".join(_told(facts, event, uid) for event in counted[-12:])
            yield Finding(
                "badge",
                f"the number is {badge}; by the laws it is {number}",
                uid=uid,
                evidence=(f"{len(counted)} messages were counted: {told}",),
            )
    yield from last_badges(facts, of_user)


def _told(facts: Facts, event: Event, uid: str) -> str:
    """A counted message, and what took it off."""
    recalls = [r.msg_id for r in facts.recalls.get(event.msg_id, []) if r.lowers and uid in r.recipients]
    if recalls:
        return f"{event.msg_id} (recalled by {recalls[0]})"
    return f"{event.msg_id} (read)" if gone_ms(facts, event, uid) is not None else event.msg_id


def messages_of_users(facts: Facts) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {uid: [] for uid in facts.evidence.run.badges}
    for event in facts.by_event_id.values():
        if event.kind == "message":
            for uid in event.recipients:
                if uid in found:
                    found[uid].append(event)
    return found


def number_of(facts: Facts, uid: str, events: list[Event], lossy: bool = False) -> Number:
    reports = facts.reports.get(uid, [])
    numbers = [_number_since(facts, uid, events, _newest(reports), lossy)]
    kept = [report for report in reports if not facts.state_may_be_lost(uid, report.at_ms, report.settled_ms)]
    if lossy and kept != reports:
        numbers.append(_number_since(facts, uid, events, _newest(kept), lossy))
    return Number(min(number.low for number in numbers), max(number.high for number in numbers))


def _newest(reports: list[Report]) -> Report | None:
    return max(reports, key=lambda report: (report.client_ms, report.value), default=None)


def _number_since(facts: Facts, uid: str, events: list[Event], newest: Report | None, lossy: bool) -> Number:
    since = newest.client_ms if newest else -1
    reported = newest.value if newest else 0
    taken = [0, 0]
    later = [0, 0]
    for event in events:
        surely, perhaps = counts(facts, event, uid)
        if lossy and facts.claim_may_be_lost(event, uid):
            surely = False
        firsts, is_gone = first_takers(facts, event, uid, lossy)
        if event.sent_ms > since:
            later[0] += surely and not firsts
            later[1] += perhaps and not is_gone
        else:
            taken[0] += surely and is_gone and min(firsts) > since
            taken[1] += perhaps and any(first > since for first in firsts)
    # What may have been counted may also have been taken off the report.
    return Number(max(0, reported - taken[1]) + later[0], max(0, reported - taken[0]) + later[1])


def gone_ms(facts: Facts, event: Event, uid: str) -> int | None:
    """The time of the first read or recall that takes the message off; None: it is unread."""
    return min(first_takers(facts, event, uid)[0], default=None)


def first_takers(facts: Facts, event: Event, uid: str, lossy: bool = False) -> tuple[list[int], bool]:
    """When the message may have been taken off first, as the first takers may be lost; and whether it surely was."""
    takers = [
        (mark.sent_ms, lossy and facts.state_may_be_lost(uid, mark.at_ms, mark.settled_ms))
        for mark in facts.marks.get((uid, event.conv), [])
        if mark.covers(event)
    ]
    takers += [
        (recall.sent_ms, lossy and facts.claim_may_be_lost(recall, uid))
        for recall in facts.recalls.get(event.msg_id, [])
        if recall.lowers and uid in recall.recipients
    ]
    firsts: list[int] = []
    for sent_ms, is_lost in sorted(takers):
        firsts.append(sent_ms)
        if not is_lost:
            return firsts, True
    return firsts, False


def counts(facts: Facts, event: Event, uid: str) -> tuple[bool, bool]:
    """Whether the message counted for the user: (surely, perhaps)."""
    push = event.value.get("push", {})
    if not push.get("enabled", True) or not push.get("badge", True) or not is_heard(facts, event, uid):
        return False, False
    records = facts.results.get((event.event_id, uid), []) or facts.results.get((event.event_id, ""), [])
    # Expired: before it was counted, or after. No record: another check's matter.
    if not records or any(record.value["verdict"] == "expired" for record in records):
        return False, True
    # No device of the harness has a conversation open.
    return True, True


def is_heard(facts: Facts, event: Event, uid: str) -> bool:
    """Steps 7 and 8: forced, or not muted."""
    force = event.value.get("push", {}).get("force", {})
    if force.get("mode") == "all" or (force.get("mode") == "list" and uid in force.get("uids", [])):
        return True
    level = facts.mutes.get((uid, event.conv), 0)
    if level == 0 and event.conv_type == "group":
        level = facts.evidence.run.groups.get(event.conv, {}).get(uid, 0)
    mention = event.value.get("mention", {})
    me = uid in mention.get("uids", [])
    everybody = bool(mention.get("all"))
    if level in (-1, 0):
        return True
    if event.conv_type != "group":
        return False
    return {1: me or everybody, 2: me, 4: everybody}.get(level, False)


def last_badges(facts: Facts, of_user: dict[str, list[Event]]) -> Iterator[Finding]:
    """Of users whose number only rises, the last push of a device has the highest number, and none is too high."""
    by_token: dict[tuple[str, str], list[Push]] = {}
    for push in facts.evidence.pushes:
        uid = facts.owner_of(push)
        if push.accepted and push.badge is not None and uid in facts.evidence.run.badges:
            by_token.setdefault((uid, push.token), []).append(push)
    for (uid, _), pushes in by_token.items():
        if uid in facts.reports or any(gone_ms(facts, event, uid) is not None for event in of_user.get(uid, [])):
            continue
        highest = max(pushes, key=lambda push: push.badge or 0)
        last = pushes[-1]
        below = (highest.badge or 0) - (last.badge or 0)
        # A token that went to another user gets no correction any more.
        is_old = below > 0 and not facts.is_contested(last.token, last.at_ms)
        # Each step that a failover lost makes the next number one lower.
        if is_old and below <= sum(facts.claim_may_be_lost(event, uid) for event in of_user.get(uid, [])):
            facts.allowed["old-badge"] += 1
        elif is_old:
            yield Finding(
                "old-badge",
                f"its last push says {last.badge}, an earlier one said {highest.badge}",
                uid=uid,
                device=facts.device_of(last),
                evidence=(facts.push_text(highest), facts.push_text(last)),
            )
        number = number_of(facts, uid, of_user.get(uid, []))
        if (highest.badge or 0) > number.high:
            yield Finding(
                "badge",
                f"a push said {highest.badge}; the number is at most {number.high}",
                uid=uid,
                device=facts.device_of(highest),
                evidence=(facts.push_text(highest),),
            )
