# SPDX-License-Identifier: Apache-2.0
"""Writes what is made from the chart's values.yaml: the table in its README.md, and values.schema.json.

    python -m deploy.kubernetes.chart_values [--check]

A comment above a key is the key's row. Below such a key nothing is looked at; a key without a comment is a map of such keys.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[1] / "helm"
TYPES = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
# Values of a type that the default does not show.
OTHER_TYPES = {"podDisruptionBudget.maxUnavailable": ["integer", "string"]}
TABLE = re.compile(r"(?<=\| value \| default \| meaning \|\n\|---\|---\|---\|\n)(\|.*\n)*")


def rows() -> dict[str, tuple[Any, str]]:
    """The default and the comment of each key, by its path."""
    text = (CHART / "values.yaml").read_text()
    found: dict[str, tuple[Any, str]] = {}
    comment: list[str] = []
    path: list[str] = []
    defaults = yaml.safe_load(text)
    for line in text.splitlines():
        if match := re.fullmatch(r" *# ?(.*)", line):
            comment.append(match[1])
        elif match := re.match(r"((?:  )*)(\w+):", line):
            path = [*path[: len(match[1]) // 2], match[2]]
            if not any(".".join(path[:length]) in found for length in range(1, len(path))):
                default = defaults
                for key in path:
                    default = default[key]
                if comment:
                    found[".".join(path)] = (default, " ".join(comment))
                elif not isinstance(default, dict):
                    raise SystemExit(f"values.yaml: {'.'.join(path)} has no comment")
            comment = []
        else:
            comment = []
    return found


def table() -> str:
    lines = []
    for path, (default, comment) in rows().items():
        shown = json.dumps(default, ensure_ascii=False)
        lines.append(f"| `{path}` | {f'`{shown}`' if len(shown) < 60 else 'see `values.yaml`'} | {comment} |\n")
    return "".join(lines)


def schema() -> str:
    tree: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
    }
    for path, (default, _) in rows().items():
        *maps, last = path.split(".")
        place = tree
        for key in maps:
            place = place.setdefault("properties", {}).setdefault(key, {"type": "object", "additionalProperties": False})
        place.setdefault("properties", {})[last] = {"type": OTHER_TYPES.get(path, TYPES[type(default)])}
    # Helm puts it there for a chart that uses this one.
    tree["properties"]["global"] = {"type": "object"}
    return json.dumps(tree, indent=1) + "\n"


def files() -> dict[Path, str]:
    page = (CHART / "README.md").read_text()
    return {
        CHART / "README.md": TABLE.sub(lambda _: table(), page, count=1),
        CHART / "values.schema.json": schema(),
    }


def main() -> int:
    stale = {path: text for path, text in files().items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        if "--check" in sys.argv:
            print(f"{path} is not what `python -m deploy.kubernetes.chart_values` writes")
        else:
            path.write_text(text)
            print(f"wrote {path}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
