"""GROUP BY of pull queries, computed on columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from potok.sql.analysis.form import Form
from potok.sql.analysis.select import analyse
from potok.sql.catalog import Catalog, Source, SourceColumn
from potok.sql.functions.function import Context
from potok.sql.syntax import ast
from potok.sql.types import BIGINT, VARCHAR
from potok.statements.frames import Frame
from potok.statements.pull.groups import SumOutgrown, group_frame
from sql.syntax.one_statement import parse_statement

LARGEST = 2**63 - 1
SMALLEST = -(2**63)


def grouped(select: str, **columns: tuple[pa.DataType, list[Any]]) -> list[dict[str, Any]]:
    """The groups of a stream S with these columns."""
    source = Source("S", False, tuple(SourceColumn(n, t) for n, (t, _) in columns.items()), "s", "none", "sql_json")
    statement = parse_statement(select)
    assert isinstance(statement, ast.Query)
    found = analyse(Catalog({"S": source}), statement.query, Form.PULL)
    assert found.grouping is not None
    arrays = {f"S.{name}": pa.array(values, type_) for name, (type_, values) in columns.items()}
    frame = group_frame(Frame(arrays, len(next(iter(arrays.values())))), found.grouping, Context())
    rendered = frame.computed(found.projected, Context())
    names = [item.name for item in found.items]
    return pa.table(rendered, names=names).to_pylist()


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([LARGEST], LARGEST),
        ([SMALLEST], SMALLEST),
        ([LARGEST - 1, 1], LARGEST),
        ([SMALLEST + 1, -1], SMALLEST),
        ([LARGEST, LARGEST, SMALLEST, SMALLEST, 2], 0),
        ([LARGEST, None, 1, -1], LARGEST),
        ([2**62, 2**62 - 1], LARGEST),
    ],
)
def test_a_sum_may_be_as_large_as_64_bits_hold(values: list[int | None], total: int) -> None:
    given = {"K": (VARCHAR, ["a"] * len(values)), "V": (BIGINT, values)}
    assert grouped("SELECT k, SUM(v) AS t FROM s GROUP BY k", **given) == [{"K": "a", "T": total}]


@pytest.mark.parametrize("values", [[LARGEST, 1], [SMALLEST, -1], [2**62, 2**62], [LARGEST, LARGEST]])
def test_a_sum_that_64_bits_do_not_hold_is_refused(values: list[int]) -> None:
    given = {"K": (VARCHAR, ["a"] * len(values)), "V": (BIGINT, values)}
    with pytest.raises(SumOutgrown):
        grouped("SELECT k, SUM(v) AS t FROM s GROUP BY k", **given)


def test_the_sums_of_other_groups_do_not_count() -> None:
    given = {"K": (VARCHAR, ["a", "b", "a"]), "V": (BIGINT, [LARGEST, LARGEST, -1])}
    found = grouped("SELECT k, SUM(v) AS t FROM s GROUP BY k", **given)
    assert found == [{"K": "a", "T": LARGEST - 1}, {"K": "b", "T": LARGEST}]


def test_groups_come_in_the_order_of_their_first_rows_and_rows_without_a_key_are_in_none() -> None:
    given = {"K": (VARCHAR, ["z", None, "a", "z", "m"]), "L": (BIGINT, [1, 1, None, 1, 2])}
    found = grouped("SELECT k, l, COUNT(*) AS n FROM s GROUP BY k, l", **given)
    assert found == [{"K": "z", "L": 1, "N": 2}, {"K": "m", "L": 2, "N": 1}]


def test_there_is_one_group_of_no_rows_without_keys_and_none_with_keys() -> None:
    given: dict[str, Any] = {"K": (VARCHAR, []), "V": (BIGINT, [])}
    assert grouped("SELECT COUNT(*) AS n FROM s", **given) == [{"N": 0}]
    assert grouped("SELECT k, COUNT(*) AS n FROM s GROUP BY k", **given) == []


@pytest.mark.parametrize(
    ("type_", "values", "counts"),
    [
        (pa.float64(), [0.0, -0.0, float("nan"), float("nan")], [2, 2]),
        (pa.list_(BIGINT), [[1], [1, 2], [1]], [2, 1]),
        (pa.struct([("A", BIGINT)]), [{"A": 1}, {"A": 2}, {"A": 1}], [2, 1]),
        (pa.decimal128(4, 2), [1, 2, 1], [2, 1]),
    ],
)
def test_equal_values_of_any_type_are_one_group(type_: pa.DataType, values: list[Any], counts: list[int]) -> None:
    found = grouped("SELECT k, COUNT(*) AS n FROM s GROUP BY k", K=(type_, values))
    assert [row["N"] for row in found] == counts
