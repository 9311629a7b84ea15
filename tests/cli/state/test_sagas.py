from __future__ import annotations

from pathlib import Path

import pytest

from patterns.sagas.checkout import program, state
from patterns.sagas.shop import STATES, fill
from potok.testing import TestDriver


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    fill(tmp_path / "data").close()
    return tmp_path / "data"


@pytest.fixture
def sagas(potok, directory: Path):
    return lambda *words: potok("--broker", f"file:{directory}", "sagas", *words)


def test_instances_are_listed_with_those_that_wait_for_operators_first(sagas) -> None:
    rows = sagas("list", "--json").objects
    assert [row["id"] for row in rows] == ["stuck", "undoing", "waiting", "waiting/2", "gone", "done"]
    assert {row["id"]: row["state"] for row in rows} == STATES
    assert [row["id"] for row in sagas("list", "checkout", "--state", "running", "--json").objects] == [
        "waiting",
        "waiting/2",
    ]


def test_a_list_for_people_says_why(sagas) -> None:
    result = sagas("list", "--state", "stuck")
    assert result.out.splitlines()[0].split()[:4] == ["saga", "id", "state", "steps"]
    assert "timed out" in result.out
    result = sagas("list", "--limit", "2")
    assert "there are more instances; use --limit 20, or --state" in result.err


def test_an_instance_is_shown_with_its_history(sagas) -> None:
    out = sagas("show", "checkout", "undoing").out
    assert out.startswith('checkout undoing: aborting: step "stock" failed')
    assert "next timer: undo_timeout:payment at " in out
    assert "RefundPayment" in out and "payment.processed-undoing-1" in out
    assert sagas("show", "checkout", "undoing", "--json").objects[0]["steps"]["stock"]["state"] == "failed"


def test_operators_retry_skip_and_abort(sagas, directory: Path) -> None:
    def states(*orders: str) -> list[str | None]:
        with TestDriver(program(), directory=directory) as driver:
            driver.run()
            return [state(driver, order) for order in orders]

    assert "stuck was stuck; retry takes effect with the next batch" in sagas("retry", "checkout", "stuck").err
    assert states("stuck") == ["aborting"]
    sagas("abort", "checkout", "stuck")
    sagas("abort", "checkout", "waiting")
    assert states("stuck", "waiting") == ["aborted", "aborting"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("show", "checkout", "nobody"), 'saga "checkout" has no instance "nobody"'),
        (("show", "chekout", "done"), 'there is no saga "chekout"'),
        (("list", "--state", "lost"), '"lost" is not a state'),
        (("skip", "checkout", "waiting"), "is running and does not take skip"),
        (("abort", "checkout", "done"), "is completed and does not take abort"),
    ],
)
def test_what_cannot_be_is_an_error(sagas, words: tuple[str, ...], text: str) -> None:
    result = sagas(*words)
    assert result.code != 0 and text in result.err and "hint" in result.err
