#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a push costs the processor: `make cost`.

`push-cost` (Tests/PushCost) plays a fixed world of the simulation: one shard of the worker, with the traffic of `carillon
bench`, in virtual time. Callgrind counts the turns of the worker's loop without what the models of Kafka, Redis and the network
do in them. So two runs of a binary give the same figures, whatever else runs on the machine.

Not counted: librdkafka, TLS, system calls and the kernel, which are not in a simulation, and waits for memory. The figures
depend on the versions of compiler and libraries.

`--trained` counts the binary of `deploy/build-trained --cost`, which is built like the shipped one. It has figures of its own.
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
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "deploy/cost.json"
# Above it a figure is a failure.
LIMIT = 1.02
# Any change of the code moves all code behind it to other lines of the cache: the client's own misses differ by 9 % between two
# commits that did not touch it.
LIMITS = {"I1 misses": 1.1}
# The counts of two trainings differ a little, and so do the orders of code that they lead to.
TRAINED_LIMITS = {"taken branches": 1.1, "I1 misses": 1.2}
TRAINED = "trained "
SHAPES = ("1:1", "group", "muted", "client")
CALLGRIND = [
    "valgrind",
    "--tool=callgrind",
    # The first cache of the processors that this runs on; the last one is not looked at.
    "--cache-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    "--LL=8388608,16,64",
    # Each instruction's count, for the number of calls: callgrind's own includes calls outside of what is counted.
    "--dump-instr=yes",
    "--compress-pos=no",
    # Each jump's count.
    "--collect-jumps=yes",
    # Begins and ends counting (Tests/CostCounting).
    "--toggle-collect=$s12CostCounting*6level*",
]
# Hashes of Swift's dictionaries, and the allocator's habits of time, would differ from run to run.
ENVIRONMENT = {"SWIFT_DETERMINISTIC_HASHING": "1", "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"}
COUNTED = {
    "retains": re.compile(r"swift_retain(_n)?"),
    "releases": re.compile(r"swift_release(_n)?"),
    "allocations": re.compile(r"(malloc|calloc|realloc|posix_memalign|aligned_alloc)"),
    "copies": re.compile(r"__mem(cpy|move)\w*"),
}
REFERENCES = re.compile(r"_?swift_(bridgeObject)?([rR]etain|[rR]elease)(_n)?_?")
RUNTIME = re.compile(r"_?swift[_:]|\(anonymous namespace\)|.*swift::")
MODULE = re.compile(r"\$s(\d+)(\w+)")


class Profile:
    """The counted part of a run, from a file of callgrind."""

    def __init__(self, path: Path) -> None:
        self.parts: Counter[str] = Counter()
        self.instructions: dict[str, Counter[str]] = {}
        self.totals: Counter[str] = Counter()
        names: dict[tuple[str, str], str] = {}

        def named(kind: str, text: str) -> str:
            number, _, name = text.partition(" ")
            if name:
                names[kind, number] = name
            return names.get((kind, number), number)

        events: list[str] = []
        library = function = part = ""
        is_call = False
        call_sites: set[tuple[str, str]] = set()
        for line in path.read_text(errors="replace").splitlines():
            key, equals, rest = line.partition("=")
            if not equals:
                if line.startswith("events:"):
                    events = line.split()[1:]
                elif line.startswith("0x"):
                    if not is_call:
                        address, _, *values = line.split()
                        for event, value in zip(events, values, strict=False):
                            self.totals[event] += int(value)
                        if values:
                            self.parts[part] += int(values[0])
                            self.instructions.setdefault(function, Counter())[address] += int(values[0])
                    else:
                        call_sites.add((function, line.split()[0]))
                    is_call = False
            elif key == "ob":
                library = Path(named("ob", rest)).name
            elif key == "fn":
                function = re.sub(r"'\d+$", "", named("fn", rest))
                part = self.part(function, library)
            elif key in ("cob", "cfn"):
                named(key[1:], rest)
            elif key == "calls":
                is_call = True
            elif key in ("jump", "jcnd"):
                # "count target", of a conditional jump "taken/executed target". Its own line follows, without costs.
                self.totals["taken branches"] += int(re.split(r"[ /]", rest)[0])

        # A call leaves the straight line of the code, and so does its return. Callgrind's number of calls includes those
        # outside of what is counted, so the executions of the calling instruction count.
        calls = sum(self.instructions.get(caller, Counter())[address] for caller, address in call_sites)
        self.totals["taken branches"] += 2 * calls

    def calls(self, pattern: re.Pattern[str]) -> int:
        """How often such functions were called: as often as their most frequent instruction was executed."""
        return sum(max(counts.values()) for name, counts in self.instructions.items() if pattern.fullmatch(name))

    @staticmethod
    def part(function: str, library: str) -> str:
        """A module, a library, or a part of Swift."""
        if not library.startswith("push-cost"):
            return library.split(".so")[0].split("-")[0]
        if "RefCounts" in function or REFERENCES.fullmatch(function):
            return "reference counts"
        module = MODULE.match(function)
        if module:
            name = module.group(2)[: int(module.group(1))]
            if (ROOT / "Sources" / name).is_dir() or (ROOT / "Tests" / name).is_dir():
                return name
        return "Swift runtime" if RUNTIME.match(function) else "Swift library"


def figures(shape: str, binary: Path) -> dict[str, float]:
    """Per push; of the muted group, per member."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [*CALLGRIND, f"--callgrind-out-file={out}", f"--log-file={folder}/log", str(binary), shape, folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | ENVIRONMENT)
        counted = json.loads(done.stdout)
        profile = Profile(out)
    count = counted["pushes"]
    found = {
        "instructions": profile.totals["Ir"] / count,
        "taken branches": profile.totals["taken branches"] / count,
        "I1 misses": profile.totals["I1mr"] / count,
    }
    found |= {name: profile.calls(pattern) / count for name, pattern in COUNTED.items()}
    found["pushes per turn"] = count / counted["turns"]
    found |= {f"in {name}": value / count for name, value in profile.parts.most_common() if value / count >= 100}
    return {name: round(value, 2 if value < 100 else 0) for name, value in found.items()}


def is_above(shape: str, name: str, value: float, known: float | None) -> bool:
    """Parts only say where a total comes from."""
    if known is None or name.startswith("in ") or name == "pushes per turn":
        return False
    limits = TRAINED_LIMITS if shape.startswith(TRAINED) else LIMITS
    return value > known * limits.get(name, LIMIT)


def line(shape: str, name: str, value: float, known: float | None) -> str:
    change = f"{value / known - 1:+8.1%}" if known else ""
    return f"{shape:16}{name:32}{value:12,.2f} {change:8} {'ABOVE' if is_above(shape, name, value, known) else ''}".rstrip()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="deploy/cost.py",
        description="Counts instructions, taken branches, cache misses, reference counts, allocations and copies of a push. "
        f"Fails if a figure is above {FIGURES.relative_to(ROOT)} by more than {LIMIT - 1:.0%} "
        f"({', '.join(f'{name}: {limit - 1:.0%}' for name, limit in LIMITS.items())}).",
    )
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"{', '.join(SHAPES)}; all without one")
    parser.add_argument("--binary", type=Path, help="default: .build/release/push-cost or .build/trained/release/push-cost")
    parser.add_argument("--trained", action="store_true", help="the binary is trained and has figures of its own")
    parser.add_argument("--write", action="store_true", help="the figures replace those of the file")
    parser.add_argument("--json", action="store_true", help="prints the figures as JSON")
    parsed = parser.parse_args()
    if unknown := set(parsed.shapes) - set(SHAPES):
        parser.error(f"unknown shape: {', '.join(sorted(unknown))}")
    parsed.binary = parsed.binary or ROOT / ".build" / ("trained/release" if parsed.trained else "release") / "push-cost"
    if not parsed.binary.exists():
        parser.error(f"{parsed.binary} is missing; `make cost` and `make cost-trained` build it")
    return parsed


def main() -> int:
    given = arguments()
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    shapes = given.shapes or SHAPES
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        # callgrind does not read Swift's debug information. GNU's strip does not keep the segments that BOLT laid out.
        binary = Path(folder) / "push-cost"
        objcopy = Path(shutil.which("swiftc") or "").with_name("llvm-objcopy")
        subprocess.run([objcopy, "--strip-debug", given.binary, binary], check=True)
        for shape, values in zip(shapes, pool.map(lambda shape: figures(shape, binary), shapes), strict=True):
            shape = f"{TRAINED}{shape}" if given.trained else shape
            found[shape] = values
            for name, value in values.items():
                if not given.json:
                    print(line(shape, name, value, known.get(shape, {}).get(name)), flush=True)
    if given.json:
        print(json.dumps(found, indent=2))
    if given.write:
        FIGURES.write_text(json.dumps(known | found, indent=2) + "\n")
        return 0
    limits = {shape: known.get(shape, {}) for shape in found}
    above = any(
        is_above(shape, name, value, limits[shape].get(name)) for shape in found for name, value in found[shape].items()
    )
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
