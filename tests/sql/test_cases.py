"""Scripts as cases: statements, records and their results, or why a statement is refused."""

from __future__ import annotations

from typing import Any

import pytest

from potok.sql.errors import SqlError
from potok.testing import SqlDriver
from sql.in_process_sql import InProcessSql
from sql.script_cases import cases, check_outputs, check_queries, play

ALL = cases()
TOLD = [pytest.param(case, id=name) for name, case in ALL if "error" not in case]
IN_ONE_BATCH = [pytest.param(case, id=name) for name, case in ALL if "error" not in case and "each" not in case]
REFUSED = [pytest.param(case, id=name) for name, case in ALL if "error" in case]
SAMPLE = [pytest.param(case, id=name) for name, case in ALL if case.get("spark")]


@pytest.mark.parametrize("case", TOLD)
def test_records_that_arrive_one_by_one_have_the_result_of_the_case(case: dict[str, Any]) -> None:
    with InProcessSql(case["given"]) as driver:
        play(driver, case, one_by_one=True)
        check_outputs(driver, case, one_by_one=True)
        check_queries(driver, case)


@pytest.mark.parametrize("case", IN_ONE_BATCH)
def test_records_in_one_batch_return_the_same(case: dict[str, Any]) -> None:
    with InProcessSql(case["given"]) as driver:
        play(driver, case, one_by_one=False)
        check_outputs(driver, case, one_by_one=False)
        check_queries(driver, case)


@pytest.mark.parametrize("case", REFUSED)
def test_a_statement_is_refused_with_a_position_and_a_reason(case: dict[str, Any]) -> None:
    with InProcessSql(case["given"]) as driver:
        with pytest.raises(SqlError) as caught:
            driver.execute(case["sql"])
        assert case["error"] in str(caught.value)
        place = caught.value.location
        assert place is not None, "an error says where"
        assert (place.line, place.column) == (case.get("line", 1), case["column"])
        assert caught.value.hint, "an error says what to write instead"
        assert caught.value.line_text.strip() == case["sql"].splitlines()[place.line - 1].strip()
        assert case.get("kind", type(caught.value).__name__) == type(caught.value).__name__


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("case", SAMPLE)
def test_spark_returns_the_same(case: dict[str, Any]) -> None:
    one_by_one = case.get("each", False)
    with SqlDriver(case["given"]) as driver:
        play(driver, case, one_by_one=one_by_one)
        check_outputs(driver, case, one_by_one=one_by_one)
        check_queries(driver, case)


def test_there_are_cases_of_every_kind() -> None:
    assert len(TOLD) >= 150
    assert len(REFUSED) >= 60
