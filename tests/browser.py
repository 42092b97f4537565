"""Chromium with its driver, for what is looked at in a browser."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_selenium_python
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

AXE = Path(axe_selenium_python.__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
_PATIENCE = 300.0
_RUN_AXE = (
    "const done = arguments[0]; axe.run().then(found => done(found.violations)).catch(error => done([{id: String(error)}]))"
)


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """A browser without a window. Where there is none the test is skipped, unless SURRECALL_TEST_BROWSER demands one."""
    demanded = bool(os.environ.get("SURRECALL_TEST_BROWSER"))
    deadline = time.monotonic() + (_PATIENCE if demanded else 0)
    # one that is demanded may still be on its way
    while not (shutil.which("chromium") and shutil.which("chromedriver")) and time.monotonic() < deadline:
        time.sleep(1.0)
    found, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not found or not driver:
        if demanded:
            pytest.fail("SURRECALL_TEST_BROWSER demands chromium and chromedriver, and they are not on PATH")
        pytest.skip("no chromium and chromedriver on PATH")
    options = Options()
    options.binary_location = found
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service(driver), options=options)
    try:
        yield browser
    finally:
        browser.quit()


def look(
    browser: webdriver.Chrome, url: str, width: int, *, height: int = 900, dark: bool = False, print_it: bool = False
) -> None:
    """Open a page as wide as a device, light or dark, or as it would be printed."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print" if print_it else "", "features": [scheme]})
    browser.get(url)


def accessibility_faults(browser: webdriver.Chrome) -> list[str]:
    """What axe-core finds wrong with the page as it is shown."""
    # by the protocol, since the page's own policy forbids scripts
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    found: list[dict[str, Any]] = browser.execute_async_script(_RUN_AXE)
    return [
        f"{fault['id']}: {fault.get('help')}: {[node['html'][:120] for node in fault.get('nodes', [])][:3]}" for fault in found
    ]


def complaints(browser: webdriver.Chrome) -> list[str]:
    """What the console holds since it was last read."""
    return [str(entry["message"]) for entry in _log(browser, "browser")]


def requests(browser: webdriver.Chrome) -> list[str]:
    """The addresses that were asked for since the browser was last asked for them."""
    messages = [json.loads(entry["message"])["message"] for entry in _log(browser, "performance")]
    return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]


def _log(browser: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return found
