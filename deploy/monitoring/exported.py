"""What workers export: metrics.txt, written by the drill from a running worker, and whether expressions fit to it."""

from __future__ import annotations

import re
from pathlib import Path

PATH = Path(__file__).parent / "metrics.txt"
# Prometheus' own, and the labels that it adds.
OWN = {"up": set(), "ALERTS": {"alertname", "alertstate"}}
ADDED = {"job", "instance", "namespace"}
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}

Exported = dict[str, set[str]]


def read_exported() -> Exported:
    """Series by name, with their labels. A line of the file: name, kind, labels."""
    series: Exported = {}
    for line in PATH.read_text().splitlines():
        name, kind, *labels = line.split()
        for suffix in SUFFIXES.get(kind, ("",)):
            series[name + suffix] = set(labels) | ({"le"} if suffix == "_bucket" else set())
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
