# SPDX-License-Identifier: Apache-2.0
"""Two versions in one group: which worker runs which binary, when, and what is said where they do not fit together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos import cli, schedule
from chaos.checker import judge
from chaos.checks import order
from chaos.evidence import CHUNKS, EVENTS, PARKED
from chaos.facts import Facts
from chaos.findings import Finding
from chaos.fleet import Fleet
from chaos.nemesis import Nemesis
from chaos.schedule import BASE, FAULTS, THIS, VERSION_FAULTS, Action, Shape, kinds_of
from chaos.servers import SetupFault, configuration
from chaos.settings import Settings
from chaos.tests.good_run import good_run
from chaos.tests.test_checker import found, turn_the_order
from chaos.traffic import HOLDS, Load, first_records, population
from chaos.world import World

NEWER, EARLIER = Path("/newer/carillon"), Path("/earlier/carillon")


def setting(fault: str, folder: Path, *more: str) -> Settings:
    command = ["run", "--binary", str(NEWER), "--base", str(EARLIER), "--broker", "embedded", *more]
    return cli.settings(cli.parser().parse_args(command), 1, fault, folder, "")


def versions(fault: str) -> list[tuple[str, str]]:
    """The versions that each worker starts with, as the run goes on."""
    shape = Shape()
    begins = [(worker, BASE if worker in schedule.of_base(fault, shape.workers) else THIS) for worker in shape.workers]
    starts = [action for action in schedule.make(fault, 3, shape) if action.verb == "start"]
    return begins + [(action.target, action.version) for action in starts]


def all_of(version: str) -> list[tuple[str, str]]:
    return [(worker, version) for worker in Shape().workers]


@pytest.mark.parametrize("fault", [fault for fault in VERSION_FAULTS if "upgrade" in fault])
def test_an_upgrade_replaces_every_earlier_worker(fault: str) -> None:
    assert versions(fault) == all_of(BASE) + all_of(THIS)


@pytest.mark.parametrize("fault", [fault for fault in VERSION_FAULTS if "downgrade" in fault])
def test_a_downgrade_replaces_every_newer_worker(fault: str) -> None:
    assert versions(fault) == all_of(THIS) + all_of(BASE)


@pytest.mark.parametrize("fault", ["mixed", "503+mixed"])
def test_mixed_versions_stay_as_they_are_while_workers_of_both_restart(fault: str) -> None:
    told = versions(fault)
    assert told[:3] == [("w1", BASE), ("w2", THIS), ("w3", BASE)]
    assert told[3:] == [("w1", ""), ("w2", ""), ("w3", ""), ("w1", "")]


@pytest.mark.parametrize("fault", ["downgrade", "downgrade-kill"])
def test_a_downgrade_waits_until_nothing_is_parked(fault: str) -> None:
    actions = schedule.make(fault, 2, Shape())
    verbs = [action.verb for action in actions]
    parked, drain = actions[verbs.index("apns-rule")], actions[verbs.index("drain")]
    first = next(action for action in actions if action.verb in ("term", "kill"))
    assert parked.until_s <= drain.at_s < first.at_s
    # The parked work has time to end before the first worker does.
    assert first.at_s - drain.at_s > 5


def test_kinds_of_two_versions_are_played_with_an_earlier_binary_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert kinds_of("single", has_base=True) == list(VERSION_FAULTS)
    assert not set(kinds_of("single")) & set(VERSION_FAULTS)
    assert all(schedule.broker_of(fault) == "tansu" for fault in VERSION_FAULTS)
    assert cli.main(["schedule", "--base", "--first", "2"]) == 0
    assert "start w1 by the binary of this" in capsys.readouterr().out
    for command in (["--fault", "upgrade"], ["--fault", "kill", "--base"]):
        with pytest.raises(SystemExit):
            cli.main(["schedule", *command])


def test_two_versions_run_side_by_side_for_minutes(tmp_path: Path) -> None:
    assert setting("mixed", tmp_path).load.seconds == setting("503+mixed", tmp_path).shape.seconds == 180
    assert setting("mixed", tmp_path, "--seconds", "300").load.seconds == 300
    assert setting("upgrade", tmp_path).load.seconds == 40


def test_each_worker_begins_with_its_version_and_starts_with_that_of_its_order(tmp_path: Path) -> None:
    settings = setting("mixed", tmp_path)
    fleet = Fleet(settings, tmp_path / "carillon.yaml", lambda _: None)
    assert [fleet[name].command[0] for name in ("w1", "w2", "w3", "w4")] == [
        str(path) for path in (EARLIER, NEWER, EARLIER, NEWER)
    ]
    worker = fleet["w2"]
    worker.open = lambda: None  # type: ignore[method-assign]
    nemesis = Nemesis(SimpleNamespace(settings=settings, fleet=fleet, plain=None), [])  # type: ignore[arg-type]
    for version, path in (("", NEWER), (BASE, EARLIER), ("", EARLIER), (THIS, NEWER)):
        nemesis._worker(Action(1.0, "start", "w2", version=version))
        assert worker.command[0] == str(path)


def test_a_run_without_an_earlier_binary_has_its_own_alone(tmp_path: Path) -> None:
    options = cli.parser().parse_args(["run", "--binary", str(NEWER), "--broker", "embedded"])
    for fault in FAULTS:
        settings = cli.settings(options, 1, fault, tmp_path, "")
        assert (settings.program(BASE), settings.of_base, settings.coalesce_s) == (NEWER, (), 0)


def test_traffic_of_two_versions_has_holds_and_bursts(tmp_path: Path) -> None:
    settings = setting("503+upgrade", tmp_path)
    people = population(1, settings.load)
    assert [len(people.of_role(role)) for role in HOLDS] == [0, 4, 4]
    records = [send.value for send in first_records(people, 1) if send.value and send.value["kind"] == "settings"]
    assert {value["uid"]: value["hold_s"] for value in records} == {
        uid: HOLDS[role] for role in HOLDS for uid in people.of_role(role)
    }
    desktops = [device.device for device in people.devices if device.state == "desktop"]
    assert sorted(desktops) == sorted(f"pc-{value['uid']}" for value in records)
    # No work is parked while a downgrade goes on, and no user of another run waits.
    assert setting("downgrade", tmp_path).load.parkers == Load().holders == Load().parkers == 0
    simulator = SimpleNamespace(port=1, facts=dict.fromkeys(("ca_file", "key_file", "key_id", "team_id"), "x"))
    text = configuration("b:1", "url: r", simulator, 1, 1, 1, 1, settings.coalesce_s)  # type: ignore[arg-type]
    assert "coalesce: { window_s: 1.0 }" in text


def program(folder: Path, code: int) -> Path:
    path = folder / "carillon"
    path.write_text(f"#!/bin/sh\necho unknown key; exit {code}\n")
    path.chmod(0o755)
    return path


def test_an_earlier_binary_that_refuses_the_file_is_named_with_the_cure(tmp_path: Path) -> None:
    world = World(replace(setting("upgrade", tmp_path), base=program(tmp_path, 78)), lambda _: None)
    with pytest.raises(SetupFault, match=r"exits with 78: an earlier version does not know newer keys.* without them"):
        world._ask(world.settings.program(BASE), "--offline")
    assert (tmp_path / "check.out").read_text() == "unknown key\n"
    program(tmp_path, 1)
    assert world._ask(world.settings.program(BASE), "--offline") == 1


def test_findings_of_kinds_that_are_counted_are_told_and_fail_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = replace(judge(good_run()), fault="503+downgrade", findings=[Finding("lost", "of a parked record")])
    monkeypatch.setattr(cli, "_play", lambda *_: report)
    command = ["run", "--base", "b", "--fault", "503+downgrade"]
    assert cli.main(command) == 1
    assert cli.main([*command, "--counted", "upgrade"]) == 1
    assert cli.main([*command, "--counted", "503+downgrade"]) == 0
    told = capsys.readouterr()
    assert told.out.count("of a parked record") == 3
    assert "seed 1, 503+downgrade: 1 findings are counted, and fail nothing" in told.err


@pytest.mark.parametrize(
    ("burst_ms", "newer", "kinds"),
    [
        (1000, {"push": {"force": {"mode": "list", "uids": ["ann"]}}}, []),
        (1000, {"mention": {"all": True}}, []),
        (1000, {"kind": "revoke"}, []),
        (1000, {"push": {"force": {"mode": "list", "uids": ["bob"]}}}, ["order"]),
        (1000, {}, ["order"]),
        (0, {"mention": {"all": True}}, ["order"]),
    ],
)
def test_only_what_never_waits_may_overtake_a_burst(burst_ms: int, newer: dict[str, object], kinds: list[str]) -> None:
    """m1 comes after m2, which is newer."""
    evidence = good_run()
    turn_the_order(evidence)
    evidence.run.burst_ms = burst_ms
    facts = Facts(evidence)
    facts.events["m2"].value.update(newer)
    facts.events["m2"].kind = str(newer.get("kind", "message"))
    assert [finding.kind for finding in order.order(facts)] == kinds


@pytest.mark.parametrize("topic", [CHUNKS, PARKED])
def test_a_dead_letter_of_the_workers_own_topics_is_named(topic: str) -> None:
    evidence = good_run()
    dead = evidence.dead[0]
    assert dead.headers["carillon-topic"] == EVENTS
    evidence.dead.append(replace(dead, headers={**dead.headers, "carillon-topic": topic}))
    (finding,) = found(evidence)
    assert (finding.kind, finding.evidence) == (
        "dead-letter",
        (f"{topic}[{dead.headers['carillon-partition']}]@{dead.headers['carillon-offset']}",),
    )
