#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The number of states that a reader of the pipeline has to hold in mind: `deploy/states.py`.

It counts the mutable stored properties that a recipient and an event reach, as the compiler knows them: the properties of the
class, of the structs and enums in them, counted in full at each place, and of objects that only they have. An option of an
`OptionSet` counts as a property, since it is a flag. Beside these it counts the files of the pipeline that name a mechanism.
It needs a debug build.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / ".build/debug/Modules"
PIPELINE = ROOT / "Sources/Worker/Pipeline"
# Modules with types of the pipeline. A property of another module's type counts as one.
NAMES = ("Worker", "PushCore", "Queues")
ROOTS = ("RecipientJob", "EventJob")
# Objects that many recipients and events share.
SHARED = {"RecipientJob", "EventJob", "AppContext", "ShardContext"}
MECHANISMS = {
    "parking": r"[Pp]ark",
    "statistics": r"[Ss]tatistics|(Mark|Recipient)Counts|[Tt]ally",
    "refused writes": r"refus\w*Write|[Oo]wed|owes(Claim|Count)|[Uu]nstored|isUnclaimed",
    "acks": r"\back(s|nowledged)?\b|Ack(s|nowledged)?(?![a-z])|\backnowledged",
    "bursts": r"[Bb]urst|[Cc]oalesc",
    "hand-back": r"[Hh]and(ed|s|ing)?Back|hand(ed)? back",
}


@dataclass
class Declared:
    """A type of the pipeline."""

    kind: str
    # Each mutable property, or each value of a case, with the types that its text names.
    mutable: list[tuple[str, list[str]]] = field(default_factory=list)
    constant: list[tuple[str, list[str]]] = field(default_factory=list)
    options: int = 0


def symbols(module: str) -> dict:
    """What the compiler knows of a module, private declarations included."""
    maps = [*(ROOT / "Sources").glob("C*/module.modulemap"), *(ROOT / ".build/debug").glob("C*.build/module.modulemap")]
    command = ["swift-symbolgraph-extract", "-module-name", module, "-I", str(MODULES), "-I", "/usr/include"]
    command += ["-target", "x86_64-unknown-linux-gnu", "-minimum-access-level", "private", "-skip-synthesized-members"]
    for path in maps:
        command += ["-Xcc", f"-fmodule-map-file={path}"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "-output-dir", folder], capture_output=True, text=True, check=False)
        found = Path(folder) / f"{module}.symbols.json"
        if not found.exists():
            sys.exit(f"{module} is not readable: {done.stderr.strip()[-400:]}; build it first: swift build")
        return json.loads(found.read_text())


def is_stored(symbol: dict, text: str) -> bool:
    """Whether a `var` has memory. The compiler shows one that only its type may set like a computed one."""
    if "{" not in text or text.startswith("lazy "):
        return True
    place = symbol.get("location")
    if place is None:
        return False
    lines = Path(place["uri"].removeprefix("file://")).read_text().splitlines()
    line = place["position"]["line"]
    if line >= len(lines):
        return False
    own = lines[line]
    return "(set)" in own or "didSet" in " ".join(lines[line : line + 3])


def read(names: tuple[str, ...]) -> dict[str, Declared]:
    """Declared types by their identifiers, and the classes of `ROOTS` by name."""
    types: dict[str, Declared] = {}
    owners: dict[str, str] = {}
    above: dict[str, str] = {}
    members: list[dict] = []
    for name in names:
        graph = symbols(name)
        for symbol in graph["symbols"]:
            kind = symbol["kind"]["identifier"].removeprefix("swift.")
            if kind in ("class", "struct", "enum"):
                types[symbol["identifier"]["precise"]] = Declared(kind)
                if len(symbol["pathComponents"]) == 1 and symbol["pathComponents"][0] in SHARED:
                    types[symbol["pathComponents"][0]] = types[symbol["identifier"]["precise"]]
            elif kind in ("property", "enum.case", "type.property"):
                members.append(symbol)
        for relation in graph["relationships"]:
            if relation["kind"] == "memberOf":
                owners[relation["source"]] = relation["target"]
            elif relation["kind"] == "inheritsFrom":
                above[relation["source"]] = relation["target"]
    for symbol in members:
        owner = owners.get(symbol["identifier"]["precise"])
        if owner not in types:
            continue
        add(symbol, types[owner], owner)
    for identifier, superclass in above.items():
        if identifier in types and superclass in types:
            types[identifier].mutable += types[superclass].mutable
            types[identifier].constant += types[superclass].constant
    return types


def add(symbol: dict, owner: Declared, identifier: str) -> None:
    """A member of a type."""
    kind = symbol["kind"]["identifier"].removeprefix("swift.")
    fragments = symbol["declarationFragments"]
    text = "".join(part["spelling"] for part in fragments)
    named = [part["preciseIdentifier"] for part in fragments if part.get("preciseIdentifier")]
    # The text of a nested type names the outer ones too.
    named = [name for name in named if not any(other != name and other.startswith(name) for other in named)]
    title = symbol["pathComponents"][-1]
    if kind == "type.property":
        owner.options += text.startswith("static let") and named == [identifier]
    elif kind == "enum.case" or re.match(r"(\w+ )*let ", text):
        owner.constant.append((title, named))
    elif is_stored(symbol, text):
        owner.mutable.append((title, named))


def count(types: dict[str, Declared], root: str) -> tuple[int, list[tuple[str, int]]]:
    """The properties that a class reaches, and the share of each of its own."""
    shared = {id(types[name]) for name in SHARED if name in types}

    def inside(names: list[str], above: tuple[int, ...]) -> int:
        total = 0
        for name in names:
            found = types.get(name)
            if found is None or id(found) in shared or id(found) in above:
                continue
            total += of(found, (*above, id(found)))
        return total

    def of(found: Declared, above: tuple[int, ...]) -> int:
        options = found.options if {name for name, _ in found.mutable + found.constant} >= {"rawValue"} else 0
        total = options
        for _, named in found.mutable:
            total += (1 + inside(named, above)) if not options else 0
        # A constant changes with the value that has it; an object's own do not.
        for _, named in found.constant:
            total += inside(named, above)
        return total

    own = types[root]
    above = (id(own),)
    rows = [(name, 1 + inside(named, above)) for name, named in own.mutable]
    rows += [(name, inside(named, above)) for name, named in own.constant]
    return sum(number for _, number in rows), sorted(rows, key=lambda row: -row[1])


def mechanisms() -> dict[str, list[str]]:
    """The pipeline's files whose code names a mechanism; comments do not count."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PIPELINE.rglob("*.swift")):
        code = re.sub(r"//[^\n]*", "", path.read_text())
        for name, words in MECHANISMS.items():
            if re.search(words, code):
                found[name].append(path.stem)
    return found


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="for a program")
    parser.add_argument("--verbose", action="store_true", help="each property of the roots, each file of a mechanism")
    options = parser.parse_args()
    types = read(NAMES)
    reached = {root: count(types, root) for root in ROOTS}
    files = mechanisms()
    if options.json:
        states = {root: {"states": total, "of": dict(rows)} for root, (total, rows) in reached.items()}
        print(json.dumps({"states": states, "files": {name: len(found) for name, found in files.items()}}, indent=1))
        return
    for root, (total, rows) in reached.items():
        print(f"{root}: {total} mutable stored properties")
        for name, number in rows if options.verbose else []:
            if number:
                print(f"  {number:4} {name}")
    print(f"files of the pipeline ({len(list(PIPELINE.rglob('*.swift')))}) that name")
    for name in MECHANISMS:
        print(f"  {len(files[name]):4} {name}" + (": " + " ".join(files[name]) if options.verbose else ""))


if __name__ == "__main__":
    main()
