# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures: the operator's page in a browser, and `carillon top` as a terminal shows it (`make pictures`)."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import tempfile
import time
from html import escape
from math import cos, tau
from pathlib import Path

from chaos.servers import now_ms
from docs.tests import browser
from docs.tests.browser import Browser
from docs.tests.small_world import EVENTS, USER_STATE, SmallWorld
from docs.tests.test_operator_page import GOOD, Traffic

TOP = Path(__file__).parents[1]
PICTURES = TOP / "docs/pictures"
BYTES_MAX = 150_000
# Seconds until the graphs have data.
SECONDS = float(os.environ.get("CARILLON_PICTURE_SECONDS", "150"))
# The terminal's colours on the picture's dark background.
COLOURS = {"31": "#ff9a94", "32": "#6fd08c", "33": "#f0b650"}
WIDTH, LINE, CELL = 110, 19, 8.0


def picture(tab: Browser, name: str) -> None:
    path = PICTURES / f"{name}.png"
    tab.picture(path)
    subprocess.run(["pngquant", "--force", "--strip", "--ext", ".png", "64", str(path)], check=True)


def history(world: SmallWorld) -> None:
    """A month of numbers as other workers counted them, in the shape of days and weeks, around what this one sends."""
    hour = now_ms() // 3_600_000
    client = world.redis.client()
    for time_h in range(hour - 31 * 24, hour + 1):
        daily = 0.55 - 0.45 * cos((time_h % 24 - 3) * tau / 24)
        weekly = 0.7 if (time_h // 24 + 4) % 7 in (0, 6) else 1
        share = now_ms() % 3_600_000 / 3_600_000 if time_h == hour else 1
        accepted = round(70_000 * daily * weekly * share)
        numbers = {"s": accepted, "a": accepted, "A": accepted, "x": accepted // 18, "r": accepted // 900}
        numbers |= {"v": accepted * 9 // 10, "w": accepted // 6}
        client.hset(f"c:t:{{n}}h{time_h}:im", mapping={f".{letter}": count for letter, count in numbers.items()})


def page(tab: Browser, url: str) -> None:
    tab.open(url)
    tab.until("rates are known", lambda: tab.text("#flow-2").strip()[0] in "123456789")
    tab.until("the hours are read", lambda: "By hour" in tab.text("#stats"))
    for name, size, dark in (
        ("page-light", (1100, 1500), False),
        ("page-dark", (1100, 1500), True),
        ("page-phone", (360, 1340), False),
    ):
        tab.show(size, dark)
        tab.open(url)
        picture(tab, name)


def answer(tab: Browser, url: str) -> None:
    """Why a muted user got no push: the sentence, and below it the steps."""
    tab.show((1100, 556))
    tab.open(f"{url}trace?app=im&user=leo&msg=m-team-3")
    tab.ask("document.querySelector('details').open = true")
    picture(tab, "page-answer")


def mute(world: SmallWorld) -> None:
    """Leo has a phone, mutes the team until the next evening, and gets a message of it."""
    hour_ms = 3_600_000
    common = {"v": 1, "app": "im", "sent_ms": now_ms()}
    token = {"device": "leo-phone", "token": GOOD + 56 * "1", "env": "production", "topic": "com.example.im"}
    bind = {"kind": "bind", "event_id": "s-1", "uid": "leo", "token": token | {"type": "alert", "bind_ver": 1}}
    until_ms = (now_ms() // (24 * hour_ms) + 1) * 24 * hour_ms + 18 * hour_ms
    mute = {"kind": "mute", "event_id": "s-2", "uid": "leo", "conv_id": "team", "level": 5, "until_ms": until_ms}
    for record in (bind, mute):
        world.write(USER_STATE, "leo", common | record)
    world.settle(USER_STATE)
    message = {"kind": "message", "event_id": "e-3", "msg_id": "m-team-3", "conv": {"id": "team", "type": "group"}}
    message |= {"from": {"uid": "carol", "nick": "Carol"}, "to": {"uids": ["leo"]}, "push": {"content": "Lunch?"}}
    world.write(EVENTS, "team", common | message | {"sent_ms": now_ms()})


def terminal(command: list[str]) -> str:
    """The output of a command in a terminal of that width."""
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", str(WIDTH), "rows", "50"], stdin=theirs, check=True)
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, env={**os.environ, "TERM": "xterm-256color"})
    os.close(theirs)
    text = b""
    try:
        while block := os.read(ours, 1 << 16):
            text += block
    except OSError:  # The terminal closes with its last process.
        pass
    os.close(ours)
    assert child.wait() == 0
    return text.decode().replace("\r\n", "\n")


def spans(line: str) -> str:
    """A line with its colours."""
    style, out = "", ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            code = part[2:-1]
            style = {"1": "font-weight='bold'", "2": "fill='#a9b2bd'"}.get(code, "")
            style = f"fill='{COLOURS[code]}'" if code in COLOURS else style
        elif part:
            out += f"<tspan {style}>{escape(part)}</tspan>" if style else escape(part)
    return out


def drawing(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    width, height = int(WIDTH * CELL) + 32, len(lines) * LINE + 32
    rows = [
        f"<text x='16' y='{16 + LINE * index + 14}' xml:space='preserve'>{spans(line)}</text>"
        for index, line in enumerate(lines)
    ]
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='monospace' font-size='13'"
    ground = f"<rect width='{width}' height='{height}' rx='8' fill='#14171b'/>"
    return "\n".join([f"{head} fill='#e8eaed'>", ground, *rows, "</svg>", ""])


def main() -> None:
    assert browser.is_installed(), browser.MISSING
    PICTURES.mkdir(exist_ok=True)
    binary = Path(os.environ.get("CARILLON_BINARY", TOP / ".build/debug/carillon")).resolve()
    with tempfile.TemporaryDirectory() as folder:
        world = SmallWorld(binary, Path(folder))
        try:
            world.open()
            history(world)
            mute(world)
            with Traffic(world), Browser() as tab:
                time.sleep(SECONDS)
                url = f"http://127.0.0.1:{world.worker.port}/"
                page(tab, url)
                answer(tab, url)
                top = terminal([str(binary), "top", "--once", "--worker", f"127.0.0.1:{world.worker.port}"])
                (PICTURES / "top.svg").write_text(drawing(top.replace(f":{world.worker.port}", ":9464")))
        finally:
            world.close()
    for path in PICTURES.iterdir():
        assert path.stat().st_size <= BYTES_MAX, f"{path.name}: {path.stat().st_size} bytes"
        print(f"{path.relative_to(TOP)}  {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
