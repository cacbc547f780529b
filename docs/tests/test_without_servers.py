# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/without-servers.md, one after the other, give the results that the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from chaos.servers import await_answer, connect, free_port

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs/without-servers.md").read_text()
T = TypeVar("T")
BLOCKS = re.findall(r"```[a-z]*\n(.*?)```", PAGE, re.DOTALL)


def block(words: str) -> str:
    found = [text for text in BLOCKS if words in text]
    assert len(found) == 1, words
    return found[0]


class Terminals:
    """Each long command of the page in a terminal of its own, in one folder; `carillon` is the binary."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "bin/carillon").symlink_to(binary)
        self.environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        self.open: list[subprocess.Popen[bytes]] = []

    def start(self, command: str, output: str) -> Path:
        path = self.folder / output
        with path.open("wb") as out:
            words = ["bash", "-c", f"exec {command}"]
            # The broker ends with its standard input.
            child = subprocess.Popen(
                words, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT
            )
        self.open.append(child)
        return path

    def play(self, script: str) -> str:
        words = ["bash", "-e", "-c", script]
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def close(self) -> None:
        for child in reversed(self.open):
            child.kill()
            child.wait()


def until(what: str, found: Callable[[], T | None], seconds: float = 40) -> T:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (value := found()) is not None:
            return value
        time.sleep(0.1)
    raise AssertionError(what)


@pytest.fixture
def terminals(binary: Path, tmp_path: Path) -> Iterator[Terminals]:
    terminals = Terminals(binary, tmp_path)
    try:
        yield terminals
    finally:
        terminals.close()


def test_the_page_leads_to_a_push_and_to_its_reason(terminals: Terminals) -> None:
    redis, http = free_port(), free_port()
    broker, server, simulator = (line.split("  #")[0] for line in block("redis-server --bind").splitlines())
    said = terminals.start(broker, "broker.txt")
    terminals.start(f"{server} --port {redis}", "redis.txt")
    listening = terminals.start(simulator, "simulator.txt")
    await_answer("redis", lambda: connect(redis))

    def word(path: Path, before: str) -> str | None:
        found = re.search(rf"^{before} +(127\.0\.0\.1:\d+)$", path.read_text(), re.MULTILINE)
        return found[1] if found else None

    kafka = until("the broker's address", lambda: word(said, "bootstrap"))
    apns = until("the simulator's address", lambda: word(listening, "listening on"))
    until("the lines for the configuration", lambda: "options:" in said.read_text() or None)
    text = block("# carillon.yaml")
    options = next(line for line in text.splitlines() if "options:" in line)
    assert options in said.read_text(), "the broker prints other options than the page has"
    for old, new in (
        ("127.0.0.1:40001", kafka),
        ("127.0.0.1:40002", apns),
        ("127.0.0.1:6379", f"127.0.0.1:{redis}"),
        ("Config/templates.yaml", str(TOP / "Config/templates.yaml")),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (terminals.folder / "carillon.yaml").write_text(f"{text}http: {{ listen: '127.0.0.1:{http}' }}\n")

    check, run = block("carillon check").splitlines()
    assert terminals.play(check).rstrip().endswith("all well")
    terminals.start(run, "worker.txt")
    ready = f"curl --silent http://127.0.0.1:{http}/readyz || true"
    until("the worker is ready", lambda: terminals.play(ready) == block("app im production: ok") or None)

    first, second = block("cat >bind.ndjson"), block("cat >mute.ndjson")
    # Both blocks share NOW, as in one shell.
    out = terminals.play(first + second)
    reports = out.split("nothing is doubled\n")
    assert re.search(r"accepted ok +1$", reports[1], re.MULTILINE), out
    assert re.search(r"suppressed conv_muted +1$", reports[3], re.MULTILINE), out
    assert block("Not pushed") in out
    ledger = (terminals.folder / "ledger.ndjson").read_text().splitlines()
    assert len(ledger) == 1 and "Alice: Are we still meeting at seven?" in ledger[0]


def test_compose_has_the_same_records() -> None:
    records = block("cat >bind.ndjson").split("carillon replay")[0]
    assert records in (TOP / "deploy/README.md").read_text()
