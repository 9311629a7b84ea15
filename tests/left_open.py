"""Closes what a test has left open in its own directory: all tests of a process share its descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from potok.log.embedded import embedded_broker
from potok.state.lmdb import environment


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[Any]:
    directory = getattr(item, "funcargs", {}).get("tmp_path")
    outcome = yield
    if directory is not None:
        close_under(directory)
    return outcome


def close_under(directory: Path) -> None:
    """Close the logs and the state that this process has open there."""
    directory = directory.resolve()
    for path, broker in list(embedded_broker._shared.items()):
        if path.is_relative_to(directory):
            broker.close()
            del embedded_broker._shared[path]
    for _, place in list(environment._open):
        if Path(place).is_relative_to(directory):
            environment.close_environment(Path(place))
