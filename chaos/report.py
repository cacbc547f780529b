# SPDX-License-Identifier: Apache-2.0
"""A verdict as people and programs read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from chaos.checker import Report
from chaos.findings import KINDS, Finding

# Of each kind so many are told in full; the report file has them all.
SHOWN = 3


def as_json(report: Report) -> dict[str, Any]:
    return {
        "seed": report.seed,
        "fault": report.fault,
        "counts": dict(Counter(finding.kind for finding in report.findings)),
        "findings": [asdict(finding) for finding in report.findings],
        "figures": report.figures,
    }


def as_text(report: Report) -> str:
    figures = report.figures
    lines = [
        f"seed {report.seed}, {report.fault}: {len(report.findings)} findings; "
        f"{figures['events']} events, {figures['outcomes']} outcomes, {figures['accepted']} pushes accepted, "
        f"{figures['doubled']} of them doubled; latency p50 {figures['latency_p50_ms']} ms, "
        f"p99 {figures['latency_p99_ms']} ms, worst {figures['latency_worst_ms']} ms"
    ]
    for reason, number in sorted(figures["doubled_by"].items()):
        lines.append(f"  doubled by {reason}: {number}")
    if figures["plain_worst_ms"]:
        lines.append(f"  plain consumers restarted in the same way wait {figures['plain_worst_ms']} ms at most")
    for incident, worst in figures["plain_by_incident_ms"].items():
        lines.append(f"  plain consumers around {incident}: {worst} ms")
    if figures["unowned_worst_ms"]:
        lines.append(f"  partitions were without an owner for {figures['unowned_worst_ms']} ms at most")
    for incident, worst in figures["worst_by_incident_ms"].items():
        lines.append(f"  worst around {incident}: {worst} ms")
    for failover in figures["failovers"]:
        lines.append(f"  failover {failover}")
    for move in figures["moves"]:
        lines.append(f"  moved to another Kafka cluster at {move}")
    if figures["failovers"] or figures["moves"]:
        told = ", ".join(f"{kind} {number}" for kind, number in sorted(figures["allowed"].items())) or "nothing"
        lines.append(f"  {figures['exposed_users']} users may have lost a write; what was allowed for it: {told}")
    for kind in KINDS:
        several = [finding for finding in report.findings if finding.kind == kind]
        if several:
            lines.append(f"  {kind}: {len(several)} (rule: {KINDS[kind]})")
            for finding in several[:SHOWN]:
                lines += _told(finding)
    return "\n".join(lines)


def _told(finding: Finding) -> list[str]:
    who = [("event", finding.event_id), ("user", finding.uid), ("device", finding.device)]
    named = ", ".join(f"{name} {value}" for name, value in who if value)
    lines = [f"    - {named}: {finding.text}" if named else f"    - {finding.text}"]
    return lines + [f"        {line}" for text in finding.evidence for line in text.splitlines()]
