# SPDX-License-Identifier: Apache-2.0
"""The worker's page of runbooks is generated from the present docs/runbooks.md and has every alert."""

from __future__ import annotations

from deploy.monitoring.rules import alerts
from deploy.monitoring.terms import PRODUCTION
from docs.runbook_page import PAGE, SOURCE, render


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(SOURCE.read_text()), "run: python -m docs.runbook_page"


def test_every_alert_is_there() -> None:
    page = PAGE.read_text()
    for alert in alerts(PRODUCTION):
        assert f'<h3 id="{alert.name.lower()}">' in page, alert.name
