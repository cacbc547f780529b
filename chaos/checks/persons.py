# SPDX-License-Identifier: Apache-2.0
"""Nothing to the wrong person, and nothing at the wrong time."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence import EVENTS, Push
from chaos.facts import GRACE_MS, REDIS, Bind, Event, Facts
from chaos.findings import Finding

# An ack that was written so long before its deadline was there in time.
IN_TIME_MS = 1500


def check(facts: Facts) -> Iterator[Finding]:
    for pushes in facts.accepted.values():
        for push in pushes:
            event = facts.events.get(push.msg_id)
            opened = facts.opened_ms(push)
            # A push that says of no message whose it is (a digest, a badge alone) is of no interest here.
            if event is not None and push.uid and not facts.thawed(opened):
                yield from _tokens(facts, push, event, opened)
                yield from _times(facts, push, event, opened)
    yield from token_moved(facts)


def _finding(facts: Facts, kind: str, text: str, push: Push, event: Event, *evidence: str) -> Finding:
    lines = (facts.event_text(event), *evidence, facts.push_text(push))
    return Finding(kind, text, event.event_id, push.uid, facts.device_of(push), lines)


def _tokens(facts: Facts, push: Push, event: Event, opened: int) -> Iterator[Finding]:
    binds = facts.binds_of_token.get(push.token, [])
    own = [bind for bind in binds if bind.uid == push.uid]
    if not own:
        yield _finding(facts, "wrong-person", "the token was never this user's", push, event)
        return
    for other in binds:
        if other.uid != push.uid and _late(other.settled_ms, opened) and other.version > own[-1].version:
            late = opened - (other.settled_ms or 0)
            text = f"the token was {other.uid}'s for {late} ms"
            yield _finding(facts, "wrong-person", text, push, event, _bind_text(facts, other))
    newer = [
        bind
        for bind in facts.binds
        if (bind.uid, bind.device) == (push.uid, own[-1].device)
        and bind.token != push.token
        and bind.version > own[-1].version
        and _late(bind.settled_ms, opened)
    ]
    if newer:
        late = opened - (newer[0].settled_ms or 0)
        text = f"the device had a newer token for {late} ms"
        yield _finding(facts, "old-token", text, push, event, _bind_text(facts, newer[0]))


def _bind_text(facts: Facts, bind: Bind) -> str:
    settled = facts.clock(bind.settled_ms) if bind.settled_ms is not None else "never"
    return (
        f"bind of {bind.token[:8]}… to {bind.uid} {bind.device} version {bind.version}: "
        f"produced {facts.clock(bind.at_ms)}, settled {settled}"
    )


def _late(settled_ms: int | None, opened: int) -> bool:
    return settled_ms is not None and opened - settled_ms > GRACE_MS


def _times(facts: Facts, push: Push, event: Event, opened: int) -> Iterator[Finding]:
    if opened - event.expire_at_ms > GRACE_MS:
        yield _finding(facts, "expired", f"{opened - event.expire_at_ms} ms after its time", push, event)
    if event.kind != "message":
        return
    for mark in facts.marks.get((push.uid, event.conv), []):
        if mark.covers(event) and _late(mark.settled_ms, opened):
            text = f"the user's read was settled {opened - (mark.settled_ms or 0)} ms before"
            yield _finding(facts, "read", text, push, event)
            break
    for recall in facts.recalls.get(event.msg_id, []):
        known = recall_settled_ms(facts, recall, push.uid, opened)
        if push.uid in recall.recipients and not recall.is_for_nobody and _late(known, opened):
            text = f"the recall was settled {opened - (known or 0)} ms before"
            yield _finding(facts, "recalled", text, push, event, facts.event_text(recall))
            break
    yield from _acked(facts, push, event, opened)


def _acked(facts: Facts, push: Push, event: Event, opened: int) -> Iterator[Finding]:
    key = (push.uid, facts.device_of(push), event.msg_id)
    ack = facts.acks.get(key)
    if ack is None:
        return
    deadline = facts.deadlines.get(key)
    if _late(ack.settled_ms, opened):
        text = f"the device's ack was settled {opened - (ack.settled_ms or 0)} ms before"
        yield _finding(facts, "acked", text, push, event)
    elif (
        deadline is not None
        and deadline.ack_by_ms < opened
        and deadline.ack_by_ms - ack.at_ms > IN_TIME_MS
        # Where nothing was wrong, who reads the acks has no reason to be behind.
        and not facts.disturbed(deadline.at_ms, opened)
    ):
        text = f"the device acknowledged {deadline.ack_by_ms - ack.at_ms} ms before the deadline"
        yield _finding(facts, "acked", text, push, event)


def recall_settled_ms(facts: Facts, recall: Event, uid: str, opened: int) -> int | None:
    """When a user's part of a recall was done: its record, or its offset, whichever came first.

    While Redis takes no writes a recall may have its record and be kept nowhere yet; then the offset alone tells. The
    offset tells nothing of a recall that is parked for the user.
    """
    times = [record.at_ms for record in facts.results.get((recall.event_id, uid), [])]
    if facts.disturbed(recall.at_ms, opened, REDIS):
        times = []
    is_parked = (recall.event_id, uid) in facts.parked
    committed = None if is_parked else facts.settled_ms(EVENTS, recall.partition, recall.offset)
    return min([*times, *([committed] if committed is not None else [])], default=None)


def token_moved(facts: Facts) -> Iterator[Finding]:
    for (event_id, uid), records in facts.results.items():
        for record in records:
            if record.value.get("reason") != "token_moved":
                continue
            device = record.value.get("device", "")
            own = [
                bind for bind in facts.binds if (bind.uid, bind.device) == (uid, device) and bind.at_ms <= record.at_ms
            ]
            if len(own) < 2:
                continue
            newest = max(own, key=lambda bind: bind.version)
            taken = any(
                bind.uid != uid and bind.version > newest.version and bind.at_ms <= record.at_ms
                for bind in facts.binds_of_token[newest.token]
            )
            if not taken:
                yield Finding(
                    "token-moved",
                    "ended as token_moved, though the user had bound the device anew",
                    event_id,
                    uid,
                    device,
                    (_bind_text(facts, newest), facts.record_text(record)),
                )
