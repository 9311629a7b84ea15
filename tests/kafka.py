"""One Kafka server for all tests that ask for it. It is started for the first of them and stopped after the last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from potok.errors import PotokError
from potok.settings import Settings

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

REASON = "no Kafka on this machine"


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerStatus]:
    """A real server on a free port: `kafka.url` is for Potok, `kafka.bootstrap` for other clients.

    A test that asks for it is marked `kafka` by that alone. All tests share it, so a test must not rely on names
    of topics that others use too.
    """
    from potok.log.kafka.development.server import KafkaServer

    server = KafkaServer(tmp_path_factory.mktemp("kafka"), Settings.load().cache_path)
    try:
        status = server.start(0, timeout_s=120)
    except PotokError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{REASON}: {error}", pytrace=False)
        pytest.skip(f"{REASON}: {error}")
    yield status
    server.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if REASON in str(report.longrepr)]
    if skipped:
        text = f"NOT TESTED ON KAFKA: {len(skipped)} tests skipped; potok kafka up says what is missing"
        terminalreporter.write_line(text, yellow=True, bold=True)
