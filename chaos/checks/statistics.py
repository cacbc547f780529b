# SPDX-License-Identifier: Apache-2.0
"""The numbers of `carillon stats` are those of the results, each outcome once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from chaos.evidence import FINAL_VERDICTS
from chaos.facts import REDIS, Facts
from chaos.findings import Finding


def check(facts: Facts) -> Iterator[Finding]:
    counted = facts.evidence.run.stats
    # A Redis that was away, full or replaced may have taken some numbers too late, or lost them.
    if counted is None or any(instant.what.split("-")[0].split()[0] in REDIS for instant in facts.evidence.instants):
        return
    recorded, in_doubt = records(facts), open_at_moves(facts)
    for verdict in sorted(FINAL_VERDICTS):
        missing = recorded[verdict] - counted.get(verdict, 0)
        if 0 <= missing <= in_doubt[verdict]:
            facts.allowed["statistics"] += missing
        else:
            yield Finding(
                "statistics",
                f"{counted.get(verdict, 0)} {verdict} are counted, {recorded[verdict]} recorded",
                evidence=(f"counted: {counted}", f"recorded: {dict(recorded)}"),
            )


def open_at_moves(facts: Facts) -> Counter[str]:
    """The outcomes of events that were in work at a move to another Kafka cluster: some of them may be missing."""
    moves = facts.evidence.run.moves
    events = {event.event_id for event in facts.by_event_id.values() for move in moves if facts.was_open(event, move)}
    return records(facts, events)


def records(facts: Facts, events: set[str] | None = None) -> Counter[str]:
    """The last verdict of each event, user and device, without numbers alone; of these events, or of all."""
    last: dict[tuple[str, str, str], str] = {}
    for (event_id, _), records_of_user in facts.results.items():
        if events is not None and event_id not in events:
            continue
        for record in sorted(records_of_user, key=lambda record: record.at_ms):
            value = record.value
            if value.get("msg_id") or "lane" in value:
                last[(value["event_id"], value["uid"], value.get("device", ""))] = value["verdict"]
    return Counter(last.values())
