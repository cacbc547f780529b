# SPDX-License-Identifier: Apache-2.0
"""The command line, and evidence as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos import cli
from chaos.evidence import Evidence, Push, read_ledger
from chaos.fleet import BREAK_VARIABLE, Fleet
from chaos.kafka import Offsets
from chaos.schedule import FAULTS, SINGLE_FAULTS, kinds_of
from chaos.servers import SetupFault
from chaos.tests.good_run import good_run


def ledger_line(push: Push) -> str:
    """As the simulator writes it (contract section 10)."""
    aps = {} if push.badge is None else {"badge": push.badge}
    line = {
        "at_ms": push.at_ms,
        "conn": push.connection,
        "stream": 1,
        "token": push.token,
        "apns_id": push.apns_id,
        "headers": {},
        "payload": {"aps": aps, "rc": {"id": push.msg_id, "rId": push.uid}},
        "status": push.status,
        "reason": push.reason,
        "answered": True,
    }
    return json.dumps(line) + "\n"


def save(evidence: Evidence, folder: Path) -> None:
    evidence.save(folder)
    (folder / "ledger.ndjson").write_text("".join(ledger_line(push) for push in evidence.pushes))


def test_a_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    evidence = good_run()
    save(evidence, tmp_path)
    assert read_ledger(tmp_path / "ledger.ndjson") == evidence.pushes


def test_a_line_that_a_killed_simulator_left_unfinished_is_dropped(tmp_path: Path) -> None:
    evidence = good_run()
    save(evidence, tmp_path)
    path = tmp_path / "ledger.ndjson"
    path.write_text(path.read_text() + '{"at_ms":17')
    assert read_ledger(path) == evidence.pushes


def test_a_gap_between_records_is_read_once_more_and_then_named() -> None:
    offsets = Offsets()
    taken = [offset for offset in (0, 3, 1, 1, 2, 3) if offsets.take("results", 0, offset)]
    assert (taken, offsets.gaps) == ([0, 1, 2, 3], [])
    taken = [offset for offset in (6, 6, 7) if offsets.take("results", 0, offset)]
    assert (taken, offsets.gaps) == ([6, 7], ["results[0]@4 to 5"])


def test_a_good_folder_is_judged_with_0_and_a_bad_one_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = good_run()
    save(evidence, tmp_path)
    assert cli.main(["check", str(tmp_path)]) == 0
    evidence.run.badges["bob"] = 7
    save(evidence, tmp_path)
    assert cli.main(["check", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["counts"] == {"badge": 1}
    assert told["findings"][0]["uid"] == "bob"


def test_kinds_are_named_one_by_one_or_all_together() -> None:
    assert cli.kinds("kill,redis-full") == ["kill", "redis-full"]
    assert cli.kinds("all") == []
    assert kinds_of("single") == [*FAULTS, *SINGLE_FAULTS]
    with pytest.raises(SystemExit):
        cli.main(["schedule", "--fault", "earthquake"])


def test_a_schedule_is_printed_action_by_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schedule", "--fault", "full+kill", "--first", "3"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("seed 3, full+kill\n")
    assert [line.split()[2] for line in told.splitlines()[1:]] == ["redis-full", "kill", "start", "redis-room"]


def test_a_broken_worker_is_told_by_its_environment(tmp_path: Path) -> None:
    options = cli.parser().parse_args(["run", "--break", "no-dedup"])
    setting = cli.settings(options, 1, "kill", tmp_path, "no-dedup")
    fleet = Fleet(setting, tmp_path / "carillon.yaml", lambda _: None)
    assert fleet["w1"].env[BREAK_VARIABLE] == "no-dedup"
    sound = Fleet(cli.settings(options, 1, "kill", tmp_path, ""), tmp_path / "carillon.yaml", lambda _: None)
    assert BREAK_VARIABLE not in sound["w1"].env


def test_a_binary_with_librdkafka_linked_in_is_refused_for_tansu() -> None:
    """`/bin/true` loads no librdkafka either."""
    with pytest.raises(SetupFault, match="--broker embedded"):
        cli._tansu([Path("/bin/true")])
