# SPDX-License-Identifier: Apache-2.0
"""What workers export, and whether expressions fit to it.

metrics.txt is written by the drill from a running worker with one Redis; metrics-cluster.txt has what a Redis Cluster adds
(RedisTests compares it).
"""

from __future__ import annotations

import re
from pathlib import Path

PATH = Path(__file__).parent / "metrics.txt"
CLUSTER = Path(__file__).parent / "metrics-cluster.txt"
# Prometheus' own, and the labels that it adds.
OWN = {"up": set(), "ALERTS": {"alertname", "alertstate"}}
ADDED = {"job", "instance", "namespace"}
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}

Exported = dict[str, set[str]]


def read_exported(*paths: Path) -> Exported:
    """Series by name, with their labels; of both files, where none is named. A line of them: name, kind, labels."""
    series: Exported = {}
    for line in "".join(path.read_text() for path in paths or (PATH, CLUSTER)).splitlines():
        name, kind, *labels = line.split()
        for suffix in SUFFIXES.get(kind, ("",)):
            known = series.setdefault(name + suffix, {"le"} if suffix == "_bucket" else set())
            known.update(labels)
    return series


def parse_exposition(text: str) -> dict[str, tuple[str, set[str]]]:
    """Metrics of a scrape: kind and labels by name."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    found = {name: (kind, set()) for name, kind in kinds.items()}
    for name, labels in re.findall(r"^([a-z_]+)(?:\{(.*)\})? \S+$", text, re.M):
        base = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
        found[base][1].update(set(re.findall(r'(\w+)="', labels)) - {"le"})
    return found


def unknown_series(expr: str, exported: Exported, recorded: set[str]) -> list[str]:
    """Names and labels in an expression that nobody makes."""
    known = {**OWN, **exported}
    bare = re.sub(r'"[^"]*"', '""', expr)
    faults = []
    names = re.findall(r"\b(?:carillon[_:][a-z0-9_:]+|process_[a-z_]+|up|ALERTS)\b", bare)
    faults += [name for name in names if name not in known and name not in recorded]
    for name, labels in re.findall(r"([A-Za-z_:][\w:]*)\{([^}]*)\}", bare):
        allowed = known.get(name, set()) | ADDED
        faults += [f"{name}{{{label}}}" for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels) if label not in allowed]
    every = set().union(*(known.get(name, set()) for name in names)) | ADDED
    for labels in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", bare):
        faults += [f"by {label}" for label in re.findall(r"\w+", labels) if label not in every]
    return faults
