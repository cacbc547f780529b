# SPDX-License-Identifier: Apache-2.0
"""docs/runbooks.md, which the worker's page embeds, has a chapter for every alert."""

from __future__ import annotations

from pathlib import Path

from deploy.monitoring.rules import alerts
from deploy.monitoring.terms import PRODUCTION

SOURCE = Path(__file__).parents[2] / "docs/runbooks.md"


def test_every_alert_has_a_runbook() -> None:
    lines = SOURCE.read_text().splitlines()
    missing = [alert.name for alert in alerts(PRODUCTION) if f"### {alert.name}" not in lines]
    assert missing == []
