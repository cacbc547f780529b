# SPDX-License-Identifier: Apache-2.0
"""Judges a run by its evidence alone. Shares no code with the worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.checks import badges, duplicates, moves, order, outcomes, persons, statistics
from chaos.evidence import Evidence, Move
from chaos.facts import Facts
from chaos.findings import Finding
from chaos.replication import Failover


@dataclass
class Report:
    seed: int
    fault: str
    findings: list[Finding]
    figures: dict[str, Any] = field(default_factory=dict)


def judge(evidence: Evidence) -> Report:
    facts = Facts(evidence)
    findings = [
        finding
        for group in (outcomes, duplicates, persons, badges, order, statistics, moves)
        for finding in group.check(facts)
    ]
    return Report(evidence.run.seed, evidence.run.fault, findings, figures(facts))


def failover_text(facts: Facts, failover: Failover) -> str:
    spans = ", ".join(f"{facts.clock(start)} to {facts.clock(end)}" for start, end in failover.spans)
    risk = "nothing lost, by hand" if failover.handed else f"what was written in {spans or 'no time'} may be lost"
    return f"{facts.clock(failover.at_ms)} {failover.old} → {failover.new}: {risk}"


def move_text(facts: Facts, move: Move) -> str:
    """When, and how many records of each topic the mirror has not."""
    missing = ", ".join(f"{topic} {sum(begins.values())}" for topic, begins in move.begins.items())
    return f"{facts.clock(move.at_ms)}; the mirror lacks {missing} records"


def figures(facts: Facts) -> dict[str, Any]:
    evidence = facts.evidence
    late = sorted(item[0] for item in order.latencies(facts))
    extra, by_reason = duplicates.count(facts)
    return {
        "events": len(facts.by_event_id),
        "outcomes": sum(len(event.recipients) for event in facts.by_event_id.values()),
        "records": len(evidence.results),
        "requests": len(evidence.pushes),
        "accepted": sum(len(pushes) for pushes in facts.accepted.values()),
        "doubled": extra,
        "doubled_by": by_reason,
        "latency_p50_ms": late[len(late) // 2] if late else 0,
        "latency_p99_ms": late[len(late) * 99 // 100] if late else 0,
        "latency_worst_ms": late[-1] if late else 0,
        "unowned_worst_ms": order.unowned_ms(facts),
        "plain_worst_ms": max((delay.waited_ms for delay in evidence.plain), default=0),
        "plain_by_incident_ms": order.plain_of_incidents(facts),
        "worst_by_incident_ms": order.worst_of_incidents(facts),
        "failovers": [failover_text(facts, failover) for failover in facts.failovers],
        "moves": [move_text(facts, move) for move in evidence.run.moves],
        "exposed_users": sum(
            any(facts.claim_may_be_lost(event, uid) for event in events)
            for uid, events in badges.messages_of_users(facts).items()
        ),
        "allowed": dict(facts.allowed) | ({"doubled": by_reason["failover"]} if "failover" in by_reason else {}),
    }
