# SPDX-License-Identifier: Apache-2.0
"""The operator's page of one of two workers names both, and forgets one that ends."""

from __future__ import annotations

import contextlib
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.servers import Worker
from docs.tests import browser
from docs.tests.browser import Browser
from docs.tests.small_world import SmallWorld


@pytest.fixture
def two(binary: Path, tmp_path: Path) -> Iterator[tuple[SmallWorld, Worker]]:
    world = SmallWorld(binary, tmp_path)
    second = Worker("second", tmp_path, binary, world.config, {})
    try:
        world.open()
        yield world, second
    finally:
        second.kill()
        world.close()


def fleet(worker: Worker) -> str:
    """The section of the page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/", timeout=30) as answer:
        found = re.search(r'<(section|div) id="fleet".*?</\1>', answer.read().decode(), re.DOTALL)
    assert found
    return found[0]


def until(worker: Worker, words: str, seconds: float = 60) -> str:
    end = time.monotonic() + seconds
    page = ""
    while time.monotonic() < end:
        # It starts.
        with contextlib.suppress(urllib.error.URLError):
            page = fleet(worker)
        if words in page:
            return page
        time.sleep(0.5)
    raise AssertionError(f"{words}: {page} {worker.tail()}")


@pytest.mark.skipif(not browser.is_installed(), reason=browser.MISSING)
def test_an_open_page_shows_a_worker_that_comes(two: tuple[SmallWorld, Worker]) -> None:
    world, second = two
    until(world.worker, "data-live hidden>")
    with Browser() as tab:
        tab.show()
        tab.open(f"http://127.0.0.1:{world.worker.port}/")
        assert tab.ask("document.getElementById('fleet').offsetHeight") == 0
        second.open()
        tab.until("it is shown", lambda: tab.ask("document.querySelectorAll('#fleet tbody tr').length") == 2)
        tab.until("it is ok", lambda: "2 of 2 are ok" in tab.text("#fleet"))
        assert tab.ask("document.querySelector('#fleet a').href") == f"http://127.0.0.1:{second.port}/"
        assert tab.barriers() == [] and tab.complaints() == []


def test_each_of_two_workers_names_the_other(two: tuple[SmallWorld, Worker]) -> None:
    world, second = two
    assert "<table" not in until(world.worker, "data-live hidden>")
    second.open()
    page = until(world.worker, f'href="http://127.0.0.1:{second.port}/"')
    assert "of 2 are ok" in page and f":{world.worker.port} <span" in page
    until(second, f'href="http://127.0.0.1:{world.worker.port}/"')
    second.terminate()
    assert "<table" not in until(world.worker, "data-live hidden>")
