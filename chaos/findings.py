# SPDX-License-Identifier: Apache-2.0
"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass, field

# Every kind of finding, with the sentence that it contradicts.
KINDS: dict[str, str] = {
    "lost": "each (event, user) whose offset is committed has a final record",
    "stuck": "every record is committed once all is healthy again",
    "exit": "a worker ends only when asked, with code 0, within its drain time",
    "verdict": "there is one final verdict per (event, user, device)",
    "unrecorded": "each push that APNs accepted has an accepted record with its pid",
    "invented": "each accepted record has a push that APNs accepted",
    "uninvited": "nobody but an event's recipients gets a push or a record of it",
    "dead-letter": "bad records, and only they, reach the dead-letter topic",
    "feedback": "a token is removed, and told of, because of APNs' answer only",
    "doubled": "a push is accepted twice only if in flight at an incident or accepted in the second before",
    "wrong-person": "no push reaches a token a second after another user's bind of it was settled",
    "old-token": "no push goes to a device's former token a second after its new one was settled",
    "token-moved": "a device that its own user has bound anew gets its pushes by the new token",
    "recalled": "no message is pushed a second after its recall was settled",
    "read": "no message is pushed a second after its user's read was settled",
    "expired": "no message is pushed after its time",
    "acked": "no message is pushed to a device whose ack was settled a second before",
    "badge": "a user's number follows from the laws of contract section 5",
    "old-badge": "a device does not end with an older number than it had",
    "order": "pushes of one conversation reach a device in the order of their events, resends apart",
    "overlap": "one process has one push in flight per device",
    "statistics": "`carillon stats` counts each outcome once, unless Redis was away, full or replaced",
    "move": "after a move to another Kafka cluster nothing is pushed until all user state is applied again",
    "slow": "a rollout delays nothing by over 2 s beyond plain consumers; what waits for APNs goes 10 s after its "
    "return, what waits for a master of Redis 10 s after another took over; nothing waits for one without its keys",
}


@dataclass(frozen=True)
class Finding:
    kind: str
    text: str
    event_id: str = ""
    uid: str = ""
    device: str = ""
    evidence: tuple[str, ...] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no such kind of finding: {self.kind}")
