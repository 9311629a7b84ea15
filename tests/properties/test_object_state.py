"""The promise with the state in object storage, where each restart is on a machine that has to restore it."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from potok.state.objects import object_store
from potok.testing import TestDriver
from potok.testing.query_driver import QueryDriver
from tests.properties.cases import Case, cases
from tests.properties.play import play


@pytest.fixture
def other_machines(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Snapshots are taken often, and whoever restarts finds no copies."""
    monkeypatch.setattr(object_store, "MOST_DELTAS", 3)
    monkeypatch.setattr(object_store, "MOST_CELLS", 200)
    restart = QueryDriver.restart

    def elsewhere(driver: QueryDriver) -> None:
        shutil.rmtree(cache, ignore_errors=True)
        restart(driver)

    monkeypatch.setattr(QueryDriver, "restart", elsewhere)


@pytest.mark.usefixtures("other_machines")
@settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
@given(case=cases())
def test_tables_and_streams_do_not_depend_on_the_machines_that_run_the_query(case: Case) -> None:
    with tempfile.TemporaryDirectory() as shared:
        found = play(case, partial(TestDriver, state=f"object+file://{shared}/objects"))
    assert not found, "\n".join(found)
