# SPDX-License-Identifier: Apache-2.0
"""The worker's page of runbooks is generated from the present docs/runbooks.md and has every alert."""

from __future__ import annotations

import re

from deploy.monitoring.rules import alerts
from deploy.monitoring.terms import PRODUCTION
from docs.runbook_page import FOLDER, SOURCE, render


def test_the_page_is_up_to_date() -> None:
    for name, text in render(SOURCE.read_text()).items():
        assert (FOLDER / name).read_text() == text, "run: python -m docs.runbook_page"


def test_every_alert_is_there_and_every_link_leads_to_a_heading() -> None:
    page = "".join(render(SOURCE.read_text()).values())
    ids = re.findall(r'<h[23] id="([^"]*)">', page)
    assert len(set(ids)) == len(ids)
    for alert in alerts(PRODUCTION):
        assert alert.name.lower() in ids, alert.name
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert len(links) > 20 and links <= set(ids), links - set(ids)


def test_no_mark_of_markdown_remains() -> None:
    page = "".join(render(SOURCE.read_text()).values())
    marks = re.findall(r".*(?:\*\*|`|\]\().*", page.replace("`python -m docs.runbook_page`", ""))
    assert marks == []
