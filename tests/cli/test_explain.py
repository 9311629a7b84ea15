from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from cli.shop import write_program
from potok.cli.explain import ORDER, short_type

FOLD = """
from potok import StreamsBuilder

builder = StreamsBuilder("folds")
orders = builder.stream("orders", value="user_id string, amount double, note string")
by_user = orders.group_by(lambda v: v["user_id"])
by_user.reduce(lambda one, other: one, name="first")
by_user.avg("amount", name="average")
"""


@pytest.fixture
def steps(potok, tmp_path: Path):
    return {step["name"]: step for step in potok("explain", write_program(tmp_path), "--json").objects}


def test_a_traced_step_is_native_with_its_expression(steps) -> None:
    key = steps["orders.group_by"]
    assert (key["runs"], key["expressions"], key["reason"]) == ("native", ["value.user_id"], "")
    assert (steps["hourly_totals"]["runs"], steps["hourly_totals"]["expressions"]) == ("native", ["sum(value.amount)"])


def test_a_step_that_runs_as_python_says_why(steps) -> None:
    assert (steps["orders.filter"]["runs"], steps["orders.filter"]["reason"]) == ("python", "it imports a module")


def test_levels_and_shuffles_are_marked(steps) -> None:
    moves = {name: (step["level"], step["shuffle"]) for name, step in steps.items()}
    assert (moves["orders"], moves["orders.group_by"]) == ((0, False), (0, False))
    assert (moves["order_counts"], moves["hourly_totals"]) == ((1, True), (1, True))


def test_types_are_told(steps) -> None:
    assert (steps["order_counts"]["key"], steps["order_counts"]["value"]) == ("string", "int64")
    assert steps["orders.filter.map_values"]["value"] == "dynamic"


def test_a_table_is_shown_for_people(potok, tmp_path: Path) -> None:
    result = potok("explain", write_program(tmp_path))
    rows = {line.split()[0]: line for line in result.out.splitlines()}
    assert rows["step"].split() == ["step", "kind", "runs", "level", "key", "value", "how", "and", "why"]
    assert "aggregate" in rows["hourly_totals"] and "1 (shuffle)" in rows["hourly_totals"]
    assert "{key, start, end}" in rows["hourly_totals"] and "sum(value.amount)" in rows["hourly_totals"]
    assert result.err.strip().endswith("steps run natively; a batch takes 1 shuffle")


def test_what_depends_on_order_is_marked(potok, tmp_path: Path) -> None:
    program = write_program(tmp_path, FOLD)
    steps = {step["name"]: step for step in potok("explain", program, "--json").objects}
    assert (steps["first"]["order_dependent"], steps["average"]["order_dependent"]) == (True, False)
    assert ORDER in next(line for line in potok("explain", program).out.splitlines() if line.startswith("first"))


def test_fields_that_nobody_reads_are_not_decoded(potok, tmp_path: Path) -> None:
    program = write_program(tmp_path, FOLD.replace('by_user.reduce(lambda one, other: one, name="first")\n', ""))
    assert potok("explain", program, "--json").objects[0]["fields"] == ["amount", "user_id"]
    assert "decodes only amount, user_id" in potok("explain", program).out


@pytest.mark.parametrize(
    ("type_", "shown"),
    [
        (None, "dynamic"),
        (pa.int64(), "int64"),
        (pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]), "{a, b}"),
        (pa.list_(pa.struct([("a", pa.int64())])), "list of {a}"),
    ],
)
def test_a_type_in_few_words(type_: pa.DataType | None, shown: str) -> None:
    assert short_type(type_) == shown
