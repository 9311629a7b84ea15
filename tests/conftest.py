"""One Spark and one browser for all tests; whatever needs neither runs first."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import cloudpickle
import hypothesis
import pytest

import memory_files
from potok import redact
from potok.log.kafka.development.jars import connector_jars
from potok.log.kafka.errors import JarsNotFound
from potok.settings import Settings
from potok.spark.connector import CHOICE

pytest_plugins = ("kafka", "servers", "object_store", "opensearch", "apicurio", "cassandra_server", "left_open")
"""Modules of this directory: servers for all tests, and checks of what tests leave open."""

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark import SparkContext

SLOW = ("kafka", "spark", "kill", "browser")
"""Marks, in the order in which their tests run, after all the others."""

LONGEST = ("spark", "kill", "kafka", "browser")
"""The order among several workers, after all the others: the largest groups first, so that the workers end at one time.
Those of the browser come last: its driver leaves an event loop running in the thread of the tests."""

FAILED = pytest.StashKey[int]()
"""How many tests have failed in this run."""

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
"""Flags of the browser."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MAC_BROWSER = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")

# A loaded machine is no reason to fail.
hypothesis.settings.register_profile("potok", deadline=None)
hypothesis.settings.load_profile("potok")

memory_files.use()


@pytest.fixture(autouse=True)
def tests_travel_by_name() -> Iterator[None]:
    """A program that a test loads makes the modules next to it travel by value: not those of the tests, whose variables
    would no longer be their own."""
    before = cloudpickle.list_registry_pickle_by_value()
    yield
    for name in cloudpickle.list_registry_pickle_by_value() - before:
        module = sys.modules.get(name)
        if module is not None and Path(module.__file__ or "").is_relative_to(Path(__file__).parent):
            cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(autouse=True)
def secrets_of_one_test() -> Iterator[None]:
    """A word that one test uses as a secret is not masked in the messages of the next."""
    before = set(redact._known)
    yield
    redact._known.intersection_update(before)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkContext]:
    """The Spark of the whole run. A test that asks for it is marked `spark` by that alone."""
    from potok.spark.session import spark_context

    context = spark_context(Settings(driver_memory="1g", spark=connector()))
    yield context
    context.stop()


def connector() -> dict[str, str]:
    """Spark's connector to Kafka must be there when Spark starts."""
    try:
        return {"spark.jars": ",".join(map(str, connector_jars(Settings.load().cache_path))), CHOICE: "connector"}
    except JarsNotFound:
        if os.environ.get("CI"):
            raise
        return {}


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the system's browser. Mark the tests that use it with `browser`."""
    found = find_browser()
    assert found is not None
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """The browser of the whole run. A second driver cannot start in the same thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        started.close()


def find_browser() -> str | None:
    on_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    return on_path or (str(MAC_BROWSER) if MAC_BROWSER.exists() else None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for needed in ("kafka", "spark"):
            if needed in getattr(item, "fixturenames", ()):
                item.add_marker(needed)
        slow = [mark for mark in SLOW if item.get_closest_marker(mark)]
        if slow:
            # With several workers, tests that share a session, a server or a browser run in one of them; those that
            # kill have processes of their own.
            item.add_marker(pytest.mark.xdist_group(_group(slow[-1], item.path)))
        elif _uses_cassandra(item):
            # It takes seconds to start and half a gigabyte.
            item.add_marker(pytest.mark.xdist_group("cassandra"))
    items.sort(key=_turn_of_many if getattr(config.option, "loadgroup", False) else _turn)


def _group(mark: str, path: Path) -> str:
    """Return the group of the tests of one file. Kafka is in the longest one, so two workers share it, each with a
    server of its own."""
    if mark == "kill":
        return f"kill {path.name}"
    return f"kafka {sum(path.stem.encode()) % 2}" if mark == "kafka" else mark


def _uses_cassandra(item: pytest.Item) -> bool:
    given = getattr(getattr(item, "callspec", None), "params", {}).values()
    return "cassandra_url" in getattr(item, "fixturenames", ()) or any(
        isinstance(one, str) and one == "cassandra" for one in given
    )


def _slowest(item: pytest.Item) -> str:
    """The last of the marks for slow tests that a test has."""
    return next((mark for mark in reversed(SLOW) if item.get_closest_marker(mark)), "")


def _turn(item: pytest.Item) -> int:
    return ("", *SLOW).index(_slowest(item))


def _turn_of_many(item: pytest.Item) -> int:
    return ("", *LONGEST).index(_slowest(item))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("browser") and find_browser() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no Chromium on this machine: scripts/install-browser.sh installs it", pytrace=False)
        pytest.skip("no Chromium on this machine: run scripts/install-browser.sh")


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[FAILED] = session.testsfailed


def pytest_unconfigure(config: pytest.Config) -> None:
    """When the workers have ended, if there were any."""
    if not config.stash.get(FAILED, 1):
        memory_files.remove()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "no Chromium" in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(
            f"NOT TESTED IN A BROWSER: {len(skipped)} tests skipped; install Chromium (scripts/install-browser.sh)",
            yellow=True,
            bold=True,
        )
