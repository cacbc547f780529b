# SPDX-License-Identifier: Apache-2.0
"""A move to another Kafka cluster: it is noticed, and nothing is decided before all user state is applied again."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence import Move
from chaos.facts import Facts
from chaos.findings import Finding


def check(facts: Facts) -> Iterator[Finding]:
    for move in facts.evidence.run.moves:
        noticed = _first(facts, move, "other-log")
        resumed = _first(facts, move, "resumed")
        if noticed is None or resumed is None:
            what = "noticed that the cluster is another one" if noticed is None else "ended to apply user state again"
            yield Finding("move", f"no worker {what}", evidence=(facts.clock(move.at_ms),))
            continue
        for push in facts.evidence.pushes:
            opened = facts.opened_ms(push)
            if move.at_ms <= opened < resumed:
                event = facts.events.get(push.msg_id)
                yield Finding(
                    "move",
                    f"pushed {resumed - opened} ms before user state was applied again",
                    event.event_id if event else "",
                    push.uid,
                    facts.device_of(push),
                    (facts.push_text(push),),
                )


def _first(facts: Facts, move: Move, what: str) -> int | None:
    """When a worker said so first after the move."""
    return min(
        (instant.at_ms for instant in facts.evidence.instants if instant.what == what and instant.at_ms > move.at_ms),
        default=None,
    )
