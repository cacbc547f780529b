# SPDX-License-Identifier: Apache-2.0
"""The example of the APNs client alone, against the simulator: it prints the outcome of each push."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from docs.tests.small_world import BAD, SmallWorld

TOP = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("APNS_SEND", TOP / ".build/examples/debug/apns-send"))


def run(world: SmallWorld, token: str, *texts: str) -> subprocess.CompletedProcess[str]:
    assert PROGRAM.exists(), f"{PROGRAM} is not built: make examples"
    facts = world.simulator.facts
    command = [str(PROGRAM), "--endpoint", f"https://localhost:{world.simulator.port}", "--ca-file", facts["ca_file"]]
    command += ["--key", facts["key_file"], "--key-id", facts["key_id"], "--team-id", facts["team_id"]]
    command += ["--topic", "com.example.im", "--token", token]
    for text in texts:
        command += ["--text", text]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_each_push_has_its_outcome(world: SmallWorld) -> None:
    token = "5e" * 32
    ended = run(world, token, "Hello", "Again")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert [line.split("(")[0] for line in lines] == ["Hello: accepted", "Again: accepted"]
    assert token in world.pushed_tokens()


def test_it_prints_a_rejection(world: SmallWorld) -> None:
    ended = run(world, BAD + "0" * 60, "Hello")
    assert ended.returncode == 1
    assert ended.stdout.startswith("Hello: rejected(status: 400")


def test_it_refuses_an_invalid_token(world: SmallWorld) -> None:
    assert run(world, "xyz", "Hello").returncode == 64
