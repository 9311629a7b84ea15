"""Every case, in this process in three ways, on Spark in one of them, and by the oracle."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle import recompute
from tests.semantics.case import CASES, Case, load_family
from tests.semantics.play import MODES, Made, differences, play

if TYPE_CHECKING:
    from pyspark import SparkContext

FAMILIES = {path.stem: load_family(path) for path in sorted(CASES.glob("*.toml"))}
ALL = [pytest.param(family, case, id=f"{family}: {case.name}") for family, cases in FAMILIES.items() for case in cases]
BY_FAMILY = [pytest.param(*one.values, id=one.id, marks=pytest.mark.xdist_group(one.values[0])) for one in ALL]
"""The cases of a family run together, so with several workers only one of them has to run it."""

ON_SPARK = "a random split"
"""The way that has most to do with tasks: batches of many records, and restarts between them."""


@cache
def played(family: str, mode: str, *, spark: bool = False) -> dict[str, Made]:
    return play(family, FAMILIES[family], mode, spark=spark)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("family", "case"), BY_FAMILY)
def test_a_case_returns_the_declared_result(family: str, case: Case, mode: str) -> None:
    if case.outside and mode != "one batch per record":
        pytest.skip(f"outside the promise: {case.outside}")
    made = played(family, mode)[case.name]
    assert differences(case, made, each=mode == "one batch per record") == []


@pytest.mark.parametrize(("family", "case"), ALL)
def test_a_case_returns_the_declared_result_on_spark(spark: SparkContext, family: str, case: Case) -> None:
    if case.outside:
        pytest.skip(f"outside the promise: {case.outside}")
    made = played(family, ON_SPARK, spark=True)[case.name]
    assert differences(case, made, each=False) == []


@pytest.mark.parametrize(("family", "case"), ALL)
def test_the_oracle_agrees_with_the_case(family: str, case: Case) -> None:
    if case.outside:
        pytest.skip(f"outside the promise: {case.outside}")
    turns = [(sent.topic, sent.partition) for sent in case.records]
    expected = recompute(case.topology(), case.inputs, turns=turns)
    made = Made(
        {name: expected.tables[name] for name in case.tables},
        {topic: [_record(written) for written in expected.topics[topic].records] for topic in case.topics},
        [{"step": d.step, "reason": d.reason, "offset": d.position.offset} for d in expected.dead_letters],
    )
    without_times = Case(**{**vars(case), "topics": {topic: _timeless(rows) for topic, rows in case.topics.items()}})
    assert differences(without_times, made, each=False) == []


def _record(written: Any) -> dict[str, Any]:
    return {"key": written.key, "value": written.value}


def _timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: item for name, item in row.items() if name != "at"} for row in rows]


def test_no_two_cases_of_a_family_have_one_name() -> None:
    for family, cases in FAMILIES.items():
        names = [case.name for case in cases]
        assert len(set(names)) == len(names), family
