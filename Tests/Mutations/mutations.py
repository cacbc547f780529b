# SPDX-License-Identifier: Apache-2.0
"""Shows that the simulation can fail: builds it with defects, and prints the first seed that finds each.

    make simulation-mutations                    # all, up to 200 seeds each
    make simulation-mutations ARGS="--only late-reply,lost-turn"

The sources are copied to .build/mutations. There each defect replaces some code that must occur exactly once, so a
defect that no longer applies is reported. All are built once and chosen by the environment. Nothing of this is in the
shipped code. The defects of `CARILLON_TEST_BREAK` are played as well.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from defects import DEFECTS, FAULTS, TEST_BREAKS

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / ".build" / "mutations"
SWITCH = """import Glibc

private let chosenDefect = getenv("CARILLON_MUTATION").map { String(cString: $0) }

/// Whether the run has this defect.
@inline(never) func mutant(_ name: String) -> Bool { chosenDefect == name }
"""


def mutated() -> dict[str, str]:
    """The changed files, by path."""
    texts: dict[str, str] = {}
    for defect in DEFECTS:
        text = texts.get(defect.path) or (ROOT / defect.path).read_text()
        if text.count(defect.old) != 1:
            sys.exit(f"{defect.name} does not apply: its code occurs {text.count(defect.old)} times in {defect.path}")
        texts[defect.path] = text.replace(defect.old, defect.new)
    for module in {path.split("/")[1] for path in texts}:
        texts[f"Sources/{module}/Mutant.swift"] = SWITCH
    # The defects for the chaos checker are in debug builds only; this build is optimised.
    breaks = "Sources/Worker/Pipeline/Work/TestBreak.swift"
    texts[breaks] = (ROOT / breaks).read_text().replace("#if DEBUG", "#if true")
    return texts


def copy(texts: dict[str, str]) -> None:
    """Files that are the same keep their time, so that only changed modules are built again."""
    names = subprocess.run(["git", "ls-files", "Package.swift", "Package.resolved", "Sources", "Tests"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split()
    names += subprocess.run(["git", "ls-files", "--others", "--exclude-standard", "Sources", "Tests"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    wanted = {name for name in names if (ROOT / name).is_file()} | set(texts)
    for name in sorted(wanted):
        data = texts[name].encode() if name in texts else (ROOT / name).read_bytes()
        target = COPY / name
        if target.is_file() and target.read_bytes() == data:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    for folder in ("Sources", "Tests"):
        for path in (COPY / folder).rglob("*"):
            if path.is_file() and str(path.relative_to(COPY)) not in wanted:
                path.unlink()


def build() -> None:
    subprocess.run(["swift", "build", "-c", "release", "--product", "simulation"], cwd=COPY, check=True)


def failing(binary: Path, seeds: int, faults: str) -> str:
    """Seeds that fail without a defect: they show nothing."""
    command = [str(binary), "--seeds", str(seeds), "--json"] + (["--faults", faults] if faults else [])
    plain = subprocess.run(command, capture_output=True, text=True)
    return ",".join(re.findall(r"\d+", json.dumps(json.loads(plain.stdout.splitlines()[-1])["failed"])))


def play(binary: Path, name: str, seeds: int, skip: str, seconds: int) -> tuple[str, str]:
    """The first seed that finds the defect, and the broken rule."""
    faults = FAULTS.get(name, "")
    env = dict(os.environ)
    variable = "CARILLON_TEST_BREAK" if name in TEST_BREAKS else "CARILLON_MUTATION"
    env[variable] = name
    command = [str(binary), "--seeds", str(seeds), "--stop", "--json"]
    command += (["--skip", skip] if skip else []) + (["--faults", faults] if faults else [])
    try:
        run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "not found", f"{seconds} s are over"
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    found = next((line for line in lines if "seed" in line), None)
    if found:
        rules = list(dict.fromkeys(violation["rule"] for violation in found["violations"]))
        return f"{found['seed']}{f' of `{faults}`' if faults else ''}", ", ".join(rules[:2])
    if run.returncode < 0:
        return "stopped", f"the process ended by signal {-run.returncode}"
    return "not found", f"{seeds} seeds"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=900, help="time for one defect")
    parser.add_argument("--built", action="store_true", help="with the binary of the last call")
    parser.add_argument("--check", action="store_true", help="only whether all defects apply")
    options = parser.parse_args()
    texts = mutated()
    if options.check:
        return print(f"all {len(DEFECTS)} defects apply")
    binary = COPY / ".build" / "release" / "simulation"
    if not options.built:
        copy(texts)
        build()
    skips = {faults: failing(binary, options.seeds, faults) for faults in ["", *FAULTS.values()]}
    for faults, skip in skips.items():
        print(f"without a defect {faults}: {f'seeds {skip} fail' if skip else 'no seed fails'}")
    names = [defect.name for defect in DEFECTS] + TEST_BREAKS
    if options.only:
        names = [name for name in names if name in options.only.split(",")]
    says = {defect.name: defect.says for defect in DEFECTS}
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(
            lambda name: play(binary, name, options.seeds, skips[FAULTS.get(name, "")], options.seconds), names)
        for name, (seed, rules) in zip(names, results):
            missed += seed == "not found"
            print(f"| `{name}` | {says.get(name, 'of docs/chaos.md')} | {seed} | {rules} |", flush=True)
    print(f"{len(names)} defects, {missed} not found")
    sys.exit(missed > 0)


if __name__ == "__main__":
    if shutil.which("swift") is None:
        sys.exit("swift is not there")
    main()
