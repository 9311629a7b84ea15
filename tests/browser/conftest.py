"""A real browser: the system's Chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "no Chromium on this machine: THE PAGE IS NOT TESTED; install one, for example: apt-get install chromium"


def find_chromium() -> str | None:
    given = os.environ.get("POTOK_CHROMIUM")
    return given or next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    path = find_chromium()
    if path is None and os.environ.get("CI"):
        pytest.fail(INSTALL)
    if path is None:
        pytest.skip(INSTALL)
    started = playwright.chromium.launch(executable_path=path, args=FLAGS)
    yield started
    started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must not report an error of its own."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert errors == []
