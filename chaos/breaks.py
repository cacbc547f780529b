# SPDX-License-Identifier: Apache-2.0
"""Workers broken on purpose (`CARILLON_TEST_BREAK`), and what the checker must say of each.

The switches are the worker's, in debug builds only; docs/chaos.md tells what each of them does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Defect:
    # The kinds of fault that show it, taken in turn.
    faults: tuple[str, ...]
    # One of these findings proves that the checker saw it.
    findings: tuple[str, ...]
    # The Redis that it wants.
    redis: str = "single"


BREAKS: dict[str, Defect] = {
    "commit-early": Defect(("kill", "503+stop", "away+rolling"), ("lost",)),
    "no-dedup": Defect(("kill", "none"), ("doubled", "verdict")),
    "badge-twice": Defect(("kill", "none", "rolling"), ("badge",)),
    "no-recheck": Defect(("apns-503", "apns-away"), ("wrong-person", "read", "recalled", "expired")),
    "drop-result": Defect(("none", "rolling"), ("lost", "unrecorded")),
    "swallow-retry": Defect(("apns-503", "apns-429"), ("lost", "stuck")),
    "forget-page": Defect(("none", "redis-scan"), ("lost",)),
    "ignore-revoke": Defect(("apns-503", "none"), ("recalled", "badge")),
    "trust-copies": Defect(("sentinel-failover",), ("wrong-person", "old-token"), "sentinel"),
}
