#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The functions and files of the worker that an ordinary push passes, by a trace.

`push-cost` (Tests/PushCost) plays some 1:1 messages in a debug build, where no function is part of another one, and callgrind
notes every call. A function that is called at least once per push is on the path; what a turn calls once for all its pushes is
not. Accessors, closures and what the compiler adds are not counted. docs/architecture.md has the list.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
BINARY = ROOT / ".build/debug/push-cost"
CALLGRIND = [
    "valgrind",
    "--tool=callgrind",
    "--dump-instr=yes",
    "--compress-pos=no",
    # Only what happens in the worker's turns is counted (Tests/CostCounting).
    "--toggle-collect=$s12CostCounting*6level*",
]
# Functions and initialisers, by the ends of their mangled names.
DECLARED = re.compile(r"\$s.*(F|FZ|fC|fc)")
# What the page may differ by: the list of files not at all, the counts so far that not every change needs a new page.
TOLERANCE = 0.05
BEGIN, END = "<!-- deploy/push_path.py writes this -->\n", "<!-- to here -->\n"


@dataclass
class PushPath:
    """Files relative to Sources/Worker with the number of their functions that a push passes."""

    files: Counter[str]
    calls: float
    changes: float

    @property
    def functions(self) -> int:
        return self.files.total()

    def text(self) -> str:
        """A part of the page."""
        folders: dict[str, list[str]] = defaultdict(list)
        for file in sorted(self.files):
            folder, _, name = file.rpartition("/")
            folders[folder].append(f"`{name.removesuffix('.swift')}`")
        lines = [
            "",
            f"{self.functions} functions in {len(self.files)} files; {self.calls:.0f} calls, {self.changes:.0f} of them "
            "from another file.",
            "",
            "| folder of `Sources/Worker` | files | functions | |",
            "|---|---|---|---|",
        ]
        for folder, names in folders.items():
            count = sum(self.files[file] for file in self.files if file.rpartition("/")[0] == folder)
            lines.append(f"| `{folder}` | {len(names)} | {count} | {', '.join(names)} |")
        return "\n".join(lines) + "\n\n"


def calls(profile: Path) -> Counter[tuple[str, str]]:
    """How often each function called each other one.

    Callgrind's own numbers include calls outside of what is counted. So a call counts as often as its instruction did.
    """
    names: dict[str, str] = {}
    made: list[tuple[str, str, str, int]] = []
    executed: Counter[tuple[str, str]] = Counter()
    caller = callee = ""
    calls_before = 0

    def named(text: str) -> str:
        number, _, name = text.partition(" ")
        if name:
            # Callgrind tells the levels of a recursion apart.
            names[number] = re.sub(r"'\d+$", "", name)
        return names.get(number, number)

    for line in profile.read_text(errors="replace").splitlines():
        key, _, rest = line.partition("=")
        if key == "fn":
            caller = named(rest)
        elif key == "cfn":
            callee = named(rest)
        elif key == "calls":
            calls_before = int(rest.split()[0])
        elif line.startswith("0x"):
            address, _, count = line.split()
            if calls_before:
                made.append((caller, callee, address, calls_before))
                calls_before = 0
            else:
                executed[caller, address] += int(count)
    found: Counter[tuple[str, str]] = Counter()
    for caller, callee, address, count in made:
        found[caller, callee] += min(count, executed[caller, address])
    return found


def sources(binary: Path, functions: set[str]) -> dict[str, str]:
    """The file of each function of the worker, from the debug information."""
    listed = subprocess.run(["nm", binary], check=True, capture_output=True, text=True).stdout
    places = {fields[2]: fields[0] for fields in map(str.split, listed.splitlines()) if len(fields) == 3}
    names = sorted(name for name in functions if name in places)
    asked = "\n".join(f"0x{places[name]}" for name in names)
    beside_swift = Path(shutil.which("swift") or "swift").resolve().parent / "llvm-symbolizer"
    symbolizer = beside_swift if beside_swift.exists() else "llvm-symbolizer"
    command = [symbolizer, f"--obj={binary}", "--output-style=JSON", "--no-inlines"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, input=asked).stdout.splitlines()
    found = {}
    for name, line in zip(names, told, strict=True):
        symbols = json.loads(line).get("Symbol") or [{}]
        _, is_worker, file = symbols[0].get("FileName", "").partition("/Sources/Worker/")
        if is_worker:
            found[name] = file
    return found


def push_path(binary: Path = BINARY) -> PushPath:
    with tempfile.TemporaryDirectory() as folder:
        out, stripped = Path(folder) / "out", Path(folder) / "push-cost"
        # callgrind does not read Swift's debug information.
        subprocess.run(["strip", "-g", "-o", stripped, binary], check=True)
        command = [*CALLGRIND, f"--callgrind-out-file={out}", f"--log-file={folder}/log", stripped, "trace", folder]
        environment = os.environ | {"SWIFT_DETERMINISTIC_HASHING": "1"}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        pushes = json.loads(done.stdout)["pushes"]
        edges = calls(out)
    files = sources(binary, {name for edge in edges for name in edge})
    counts: Counter[str] = Counter()
    for (_, callee), count in edges.items():
        if callee in files and DECLARED.fullmatch(callee):
            counts[callee] += count
    on_path = {name for name, count in counts.items() if count >= pushes}
    changes = sum(n for (caller, callee), n in edges.items() if callee in on_path and files.get(caller) != files[callee])
    return PushPath(
        files=Counter(files[name] for name in on_path),
        calls=sum(counts[name] for name in on_path) / pushes,
        changes=changes / pushes,
    )


def parts(page: str) -> tuple[str, str, str]:
    """Before the list, the list, after it."""
    before, begin, rest = page.partition(BEGIN)
    told, end, after = rest.partition(END)
    assert begin and end, f"{PAGE} has no place for the list"
    return before + begin, told, end + after


def differences(told: str, path: PushPath) -> list[str]:
    """What is wrong on the page."""
    found = []
    rows = re.findall(r"^\| `([\w/]+)` \|.*\| (.*) \|$", told, re.MULTILINE)
    named = {f"{folder}/{name}.swift" for folder, names in rows for name in re.findall(r"`([\w+]+)`", names)}
    found += [f"a push does not pass {file}" for file in sorted(named - set(path.files))]
    found += [f"a push passes {file}" for file in sorted(set(path.files) - named)]
    counts = re.search(r"(\d+) functions in \d+ files; (\d+) calls, (\d+) of them", told)
    for name, value, text in zip(
        ("functions", "calls", "calls from another file"),
        (path.functions, path.calls, path.changes),
        counts.groups() if counts else ("0", "0", "0"),
        strict=True,
    ):
        if abs(value - int(text)) > TOLERANCE * value:
            found.append(f"{value:.0f} {name}, not {text}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--binary", type=Path, default=BINARY, help="push-cost of a debug build")
    parser.add_argument("--write", action="store_true", help=f"the list replaces that of {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    path = push_path(given.binary)
    print(path.text(), end="")
    before, told, after = parts(PAGE.read_text())
    if given.write:
        PAGE.write_text(before + path.text() + after)
        return 0
    wrong = differences(told, path)
    print("".join(f"docs/architecture.md: {line}\n" for line in wrong), end="", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
