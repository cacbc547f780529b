# SPDX-License-Identifier: Apache-2.0
"""Writes what is made from rules.py and dashboard.py.

    python -m deploy.monitoring.generate [--check] [--runbooks URL]

--check writes nothing and fails where a file is not what it would write; --runbooks is put before the alerts' links
(https://git.example.com/carillon/blob/main/), for a copy of one's own.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml

from deploy.monitoring.dashboard import dashboard
from deploy.monitoring.rules import groups
from deploy.monitoring.terms import PRODUCTION

HERE = Path(__file__).parent
NOTE = "# Made by deploy/monitoring/generate.py: change rules.py there.\n"


def rules_file(runbooks: str = "") -> str:
    return NOTE + _yaml({"groups": _groups(runbooks)})


def prometheus_rule(runbooks: str = "") -> str:
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "carillon"},
        "spec": {"groups": _groups(runbooks)},
    }
    return NOTE + _yaml(resource)


def _groups(runbooks: str) -> list[dict]:
    made = groups(PRODUCTION)
    for rule in (rule for group in made for rule in group["rules"] if "alert" in rule):
        rule["annotations"]["runbook_url"] = runbooks + rule["annotations"]["runbook_url"]
    return made


def _yaml(tree: dict) -> str:
    return yaml.safe_dump(tree, sort_keys=False, width=118, allow_unicode=True)


def files(runbooks: str = "") -> dict[Path, str]:
    overlay = HERE.parent / "kubernetes/overlays/example"
    return {
        HERE / "carillon.rules.yaml": rules_file(runbooks),
        HERE / "carillon.dashboard.json": json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n",
        overlay / "prometheus-rule.yaml": prometheus_rule(runbooks),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes rules and dashboard.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--runbooks", default="", metavar="URL")
    arguments = parser.parse_args()
    stale = 0
    for path, text in files(arguments.runbooks).items():
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        if arguments.check:
            print(f"{path} is not what `python -m deploy.monitoring.generate` writes")
        else:
            path.write_text(text)
            print(f"wrote {path}")
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
