# SPDX-License-Identifier: Apache-2.0
"""The operator's page of a real worker under traffic, in a browser."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from chaos.servers import now_ms
from docs.tests import browser
from docs.tests.browser import DESK, PHONE, Browser
from docs.tests.small_world import BAD, EVENTS, USER_STATE, SmallWorld

pytestmark = pytest.mark.skipif(not browser.is_installed(), reason=browser.MISSING)

USERS = 20
GOOD = "900d70a6"


class Traffic:
    """Some messages a second to users with good and bad tokens, until it ends."""

    def __init__(self, world: SmallWorld) -> None:
        self.world = world
        self.sent = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Traffic:
        for index in range(USERS):
            digits = (BAD if index == 0 else GOOD) + f"{index:056d}"
            token = {"device": "phone", "token": digits.ljust(64, "0"), "env": "production", "topic": "com.example.im"}
            token |= {"type": "alert", "bind_ver": 1}
            bind = {"v": 1, "kind": "bind", "app": "im", "event_id": f"page-b{index}", "sent_ms": now_ms()}
            self.world.write(USER_STATE, f"page-{index}", bind | {"uid": f"page-{index}", "token": token})
        self.world.settle(USER_STATE)
        self._thread.start()
        return self

    def _send(self) -> None:
        while not self._ends.wait(0.05):
            name, user = f"page-m{self.sent}", f"page-{self.sent % USERS}"
            message = {"v": 1, "kind": "message", "app": "im", "event_id": name, "msg_id": name, "sent_ms": now_ms()}
            message |= {"conv": {"id": user, "type": "p2p"}, "from": {"uid": "page-a"}, "to": {"uids": [user]}}
            self.world.write(EVENTS, user, message | {"push": {"content": "hello"}})
            self.sent += 1

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


@pytest.fixture(scope="module")
def page(world: SmallWorld) -> Iterator[str]:
    """The page's address, under traffic."""
    with Traffic(world) as traffic:
        end = time.monotonic() + 120
        while traffic.sent < USERS:
            assert time.monotonic() < end
            time.sleep(0.1)
        yield f"http://127.0.0.1:{world.worker.port}/"
    world.settle(EVENTS, USER_STATE)


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with Browser() as tab:
        yield tab


@pytest.fixture(autouse=True)
def same_for_all(tab: Browser) -> Iterator[None]:
    tab.show()
    tab.complaints()
    yield
    # The page's policy was not broken, and nothing failed.
    assert tab.complaints() == []


def accepted(page: str) -> int:
    """Accepted pushes, as the worker counts them."""
    with urllib.request.urlopen(f"{page}statusz", timeout=30) as answer:
        return int(json.load(answer)["apps"][0]["accepted"])


def answer_url(page: str) -> str:
    return f"{page}trace?app=im&user=page-1&msg=page-m1"


def test_numbers_change_in_place_while_traffic_flows(tab: Browser, page: str) -> None:
    tab.open(page)
    before = tab.text("#apps li")
    tab.ask("document.querySelector('#apps li').isOurs = true")
    tab.ask("document.getElementById('ask-user').focus()")
    tab.press("half a na")
    tab.until("its numbers are others", lambda: tab.text("#apps li") != before)
    assert "pushes accepted" in tab.text("#apps li")
    tab.until("its rates are known", lambda: tab.text("#flow-2").strip()[0] in "123456789")
    tab.until("the graphs are drawn", lambda: tab.ask("document.querySelectorAll('#flow svg polyline').length") >= 3)
    assert tab.text("#place").strip() and tab.text("#flow .axis").endswith("now")
    # The nodes are the same, so typing is not disturbed.
    assert tab.ask("document.querySelector('#apps li').isOurs") is True
    assert tab.ask("document.activeElement.id") == "ask-user"
    assert tab.ask("document.activeElement.value") == "half a na"
    tab.until("a refused token is told", lambda: "BadDeviceToken" in tab.text("#outcomes"))


def test_it_asks_nobody_but_its_server(tab: Browser, page: str) -> None:
    tab.open(page)
    tab.until("it was renewed", lambda: tab.ask("performance.getEntriesByType('resource').length") >= 4)
    places = tab.ask("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert all(place.startswith(page) for place in places), places


@pytest.mark.parametrize("place", ["", "trace?app=im&user=page-1&msg=page-m1"])
def test_nothing_runs_over_the_edge_of_a_phone(tab: Browser, page: str, place: str) -> None:
    tab.show(PHONE)
    tab.open(page + place)
    assert tab.ask("document.documentElement.scrollWidth") <= PHONE[0]
    wide = """[...document.querySelectorAll('main *')].filter(element => {
        const box = element.getBoundingClientRect();
        return box.width > 1 && box.right > innerWidth + 1 && !element.closest('thead');
    }).map(element => element.outerHTML.slice(0, 200))"""
    assert tab.ask(wide) == []


def test_on_a_phone_what_is_well_is_one_line_until_it_is_not(tab: Browser, page: str) -> None:
    tab.show(PHONE)
    tab.open(page)
    places = tab.ask("[...document.querySelectorAll('main section')].map(section => section.id)")
    assert places[:3] == ["health", "ask", "flow"]
    assert tab.ask("document.querySelectorAll('[data-well]').length") >= 8
    assert (
        tab.ask("[...document.querySelectorAll('[data-well]')].filter(part => part.open || part.offsetHeight > 48).length") == 0
    )
    # The reader's choice stays, and what is no longer well opens.
    tab.ask("document.querySelector('#lag summary').click()")
    before = tab.text("#apps li")
    tab.ask("document.querySelector('#lanes details').toggleAttribute('data-well', false)")
    tab.until("it was renewed", lambda: tab.text("#apps li") != before)
    assert tab.ask("document.querySelector('#lag details').open") is True
    assert tab.ask("document.querySelector('#redis details').open") is False
    tab.ask(
        "(window.fetch = async () => new Response(document.documentElement.outerHTML.replaceAll('data-well', 'data-ill')), 1)"
    )
    tab.until("it opens", lambda: tab.ask("[...document.querySelectorAll('main details')].every(part => part.open)"))


@pytest.mark.parametrize(("width", "display"), [(768, "table"), (700, "table"), (699, "block")])
def test_tables_are_tables_from_700_pixels_on(tab: Browser, page: str, width: int, display: str) -> None:
    tab.show((width, 900))
    tab.open(page)
    assert tab.ask("[...document.querySelectorAll('table')].map(table => getComputedStyle(table).display)[0]") == display
    assert tab.ask("document.documentElement.scrollWidth") <= width


def test_it_has_a_light_and_a_dark_face(tab: Browser, page: str) -> None:
    def colours() -> list[str]:
        return tab.ask("['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])")

    tab.open(page)
    light = colours()
    tab.show(dark=True)
    dark = colours()
    assert light[0] == "rgb(245, 246, 248)" and all(one != other for one, other in zip(light, dark, strict=True))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_nobody_is_kept_out(tab: Browser, page: str, size: tuple[int, int], dark: bool) -> None:
    tab.show(size, dark)
    for place in (page, answer_url(page), f"{page}trace?app=im"):
        tab.open(place)
        assert tab.barriers() == [], place
    # The last question had no user: the browser logs every answer except 200.
    assert [line for line in tab.complaints() if "400" not in line] == []


def test_the_keyboard_reaches_the_box_and_gets_its_answer(tab: Browser, page: str) -> None:
    tab.open(page)
    tab.press(Keys.TAB)
    assert tab.ask("document.activeElement.className") == "skip"
    assert tab.ask("document.activeElement.getBoundingClientRect().left") >= 0, "it is seen while it has the focus"
    for _ in range(30):
        if tab.ask("document.activeElement.id") == "ask-user":
            break
        assert tab.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        tab.press(Keys.TAB)
    assert tab.ask("document.activeElement.id") == "ask-user"
    tab.press("page-1" + Keys.TAB)
    tab.press("page-m1" + Keys.ENTER)
    tab.until("it is answered", lambda: "/trace?" in tab.driver.current_url and tab.ask("!!document.getElementById('answer')"))
    answer = tab.text("#answer")
    for words in ("page-m1", "Pushed to phone at", "badge", "accepted", "DND"):
        assert words in answer, answer
    assert GOOD not in answer and "hello" not in answer


def test_the_header_shows_health_and_a_problem_links_to_its_runbook(tab: Browser, page: str) -> None:
    tab.open(page)
    words = urllib.request.urlopen(f"{page}readyz", timeout=30).read().decode()
    health = "degraded" if ": degraded" in words else "ok"
    tab.until("health is shown", lambda: health in tab.text("#state"))
    tab.open(f"{page}runbooks#carillonredisdown")
    assert tab.ask("document.querySelector(':target').textContent") == "CarillonRedisDown"
    assert tab.barriers() == []


def test_it_pauses_and_goes_on(tab: Browser, page: str) -> None:
    tab.open(page)
    tab.ask("document.getElementById('pause').click()")
    assert tab.text("#link") == "paused" and tab.ask("document.getElementById('pause').ariaPressed") == "true"
    seen, before = tab.text("#apps li"), accepted(page)
    # Enough pushes for an update of the page.
    tab.until("the worker has gone on", lambda: accepted(page) >= before + 100)
    assert tab.text("#apps li") == seen
    tab.ask("document.getElementById('pause').click()")
    tab.until("it goes on", lambda: tab.text("#apps li") != seen)


def test_old_numbers_are_called_old(tab: Browser, page: str) -> None:
    tab.open(page)
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    tab.command("Network.enable")
    try:
        tab.command("Network.emulateNetworkConditions", **offline)
        tab.until("it says so", lambda: tab.text("#link").startswith("These numbers are old"))
    finally:
        tab.command(
            "Network.emulateNetworkConditions", **offline | {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
        )
    tab.until("it is well again", lambda: tab.text("#link").startswith("as of"))
    assert all("ERR_INTERNET_DISCONNECTED" in line for line in tab.complaints())


def test_without_scripts_the_page_is_whole(tab: Browser, page: str) -> None:
    tab.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(page)
        source = tab.driver.page_source
    finally:
        tab.command("Emulation.setScriptExecutionDisabled", value=False)
    # A fourth graph is shown while messages go by long connection too, as they do in other tests of the same world.
    graphs = 4 if "By long connection" in source else 3
    assert "load the page again" in source and "pushes accepted" in source and source.count("<polyline") == graphs
