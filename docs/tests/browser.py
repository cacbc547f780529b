# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium without a window, for the tests and pictures of the operator's page."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

MISSING = "no chromium and chromedriver: deploy/install-packages chromium chromium-driver"
PHONE, DESK = (360, 740), (1240, 900)
# Levels A and AA of WCAG 2.1, and axe's own best practices.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


def is_installed() -> bool:
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


class Browser:
    """One tab. Colours and size may change while a page is open."""

    def __init__(self, size: tuple[int, int] = DESK, dark: bool = False) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        # Chromium has no sandbox for root.
        for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars", "lang=en"):
            options.add_argument(f"--{word}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, Service(str(shutil.which("chromedriver"))))
        self.driver.set_page_load_timeout(120)
        self.driver.set_script_timeout(120)
        self.show(size, dark)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.quit()

    def show(self, size: tuple[int, int] = DESK, dark: bool = False) -> None:
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def command(self, name: str, **parameters: Any) -> Any:  # noqa: ANN401
        """Sends a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def open(self, url: str) -> None:
        self.driver.get(url)

    def ask(self, script: str) -> Any:  # noqa: ANN401
        return self.driver.execute_script(f"return {script}")

    def text(self, selector: str) -> str:
        return str(self.ask(f"document.querySelector({selector!r}).textContent"))

    def press(self, keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(keys)

    def until(self, what: str, holds: Callable[[], bool], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"waited in vain until {what}"
            time.sleep(0.1)

    def complaints(self) -> list[str]:
        """Errors and warnings on the console since the last call."""
        lines = self.driver.get_log("browser")
        return [line["message"] for line in lines if line["level"] in ("SEVERE", "WARNING")]

    def barriers(self) -> list[str]:
        """Barriers that axe finds."""
        found = Axe().run(self.driver, options={"runOnly": RULES})["violations"]
        return [f"{item['id']}: {item['help']}: {[node['html'][:200] for node in item['nodes'][:3]]}" for item in found]

    def picture(self, path: Path) -> None:
        path.write_bytes(self.driver.get_screenshot_as_png())
