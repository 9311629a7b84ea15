"""The demo as a person sees it: the command, Spark, the page."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.spark]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-c", "from potok.cli.main import main; main()", "demo", "--no-browser"]
    options = ["--port", "0", "--rate", "1000", "--data", str(tmp_path)]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/\S+", said)
    assert found, said + process.stderr.read()
    yield process, found.group()
    if process.poll() is None:
        process.kill()
        process.wait()


def test_the_demo_moves_and_ends_with_ctrl_c(page: Page, demo: tuple[subprocess.Popen[str], str]) -> None:
    process, url = demo
    page.set_default_timeout(120_000)
    expect.set_options(timeout=120_000)
    try:
        page.goto(url)
        expect(page.locator("#state-text")).to_have_text("Running")
        page.wait_for_function("() => Number(document.querySelector('#batch').textContent) >= 3")
        expect(page.locator(".bars li")).to_have_count(10)
        expect(page.locator(".bars .beside").first).to_contain_text("orders")
        page.wait_for_function("() => document.querySelectorAll('.window').length >= 2")
        expect(page.locator("#letters .chip[data-reason=late]").first).to_be_visible()
        expect(page.locator("#letters .chip[data-reason=decode]").first).to_be_visible()
        expect(page.locator('.step[data-step="orders"] .count')).not_to_have_text("–")
        expect(page.locator('.step[data-step="city_sales"] .count')).not_to_have_text("–")

        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=60) == 0
    finally:
        expect.set_options(timeout=5_000)
