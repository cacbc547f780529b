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
    recorded = records(facts)
    for verdict in sorted(FINAL_VERDICTS):
        if recorded[verdict] != counted.get(verdict, 0):
            yield Finding(
                "statistics",
                f"{counted.get(verdict, 0)} {verdict} are counted, {recorded[verdict]} recorded",
                evidence=(f"counted: {counted}", f"recorded: {dict(recorded)}"),
            )


def records(facts: Facts) -> Counter[str]:
    """The last verdict of each event, user and device, without numbers alone."""
    last: dict[tuple[str, str, str], str] = {}
    for records_of_user in facts.results.values():
        for record in sorted(records_of_user, key=lambda record: record.at_ms):
            value = record.value
            if value.get("msg_id") or "lane" in value:
                last[(value["event_id"], value["uid"], value.get("device", ""))] = value["verdict"]
    return Counter(last.values())
