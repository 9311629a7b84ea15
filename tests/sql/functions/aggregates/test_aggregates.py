"""Aggregates: what they give for values, and that all ways to compute one give the same."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.records.rows import rows_of
from potok.sql.errors import Refused
from potok.sql.functions.aggregates.aggregates import FUNCTIONS
from potok.sql.functions.aggregates.collections import collect_list, collect_set, histogram
from potok.sql.functions.function import AggregateCall, Fold, Part
from potok.sql.types import BIGINT, BOOLEAN, BYTES, DATE, DOUBLE, INT, NULL, TIME, TIMESTAMP, VARCHAR, decimal
from potok.state.codec import dump_state, load_state

BY_NAME = {function.name: function for function in FUNCTIONS}
MONEY = decimal(6, 2)
NAN = math.nan
POINT = pa.struct([("X", INT)])


def call(name: str, types: Sequence[pa.DataType], *literals: Any) -> AggregateCall | None:
    """What an aggregate is for arguments of these types and for these literals behind them."""
    kinds = [*types, *[BOOLEAN if isinstance(literal, bool) else INT for literal in literals]]
    for overload in BY_NAME[name].overloads:
        if overload.columns_among(len(kinds)) <= len(types) and (overload.columns or not types):
            found = overload.accept(kinds, literals)
            if found is not None:
                return found
    return None


def known(name: str, types: Sequence[pa.DataType], *literals: Any) -> AggregateCall:
    found = call(name, types, *literals)
    assert found is not None
    return found


def folded(fold: Fold, rows: Sequence[Sequence[Any]]) -> Any:
    state = fold.start()
    for row in rows:
        # As a query does: what is kept between two batches goes through the store.
        state = load_state(dump_state(fold.add(state, *row)))
    return state


def gives(how: AggregateCall, rows: Sequence[Sequence[Any]]) -> Any:
    return fold_result(how, folded(how.fold, rows))


def fold_result(how: AggregateCall, state: Any) -> Any:
    """The result as a column of its type has it."""
    return rows_of(pa.array([how.fold.result(state)], how.result))[0]


D1, D2 = dt.date(2024, 1, 1), dt.date(2024, 1, 2)
T1, T2 = dt.time(1), dt.time(2)
I1, I2 = dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)

CASES: list[tuple[str, list[pa.DataType], list[Any], list[Any], Any, pa.DataType]] = [
    ("COUNT", [], [], [(), ()], 2, BIGINT),
    ("COUNT", [VARCHAR], [], ["a", None, "b"], 2, BIGINT),
    ("COUNT", [VARCHAR], [], [None], 0, BIGINT),
    ("SUM", [INT], [], [1, None, 2], 3, INT),
    ("SUM", [INT], [], [2147483647, 1], -2147483648, INT),
    ("SUM", [INT], [], [None], 0, INT),
    ("SUM", [BIGINT], [], [2**62, 1], 2**62 + 1, BIGINT),
    ("SUM", [DOUBLE], [], [0.5, None, 0.25], 0.75, DOUBLE),
    ("SUM", [DOUBLE], [], [NAN, 1.0], NAN, DOUBLE),
    ("SUM", [MONEY], [], [Decimal("1.10"), None, Decimal("-2.05")], Decimal("-0.95"), MONEY),
    ("SUM", [MONEY], [], [], Decimal("0.00"), MONEY),
    ("SUM", [decimal(38, 10)], [], [Decimal("1234567890123456789012345678.0123456789")] * 2,
     Decimal("2469135780246913578024691356.0246913578"), decimal(38, 10)),
    ("AVG", [INT], [], [1, 2, None], 1.5, DOUBLE),
    ("AVG", [DOUBLE], [], [], 0.0, DOUBLE),
    ("AVG", [MONEY], [], [1.5, 2.5], 2.0, DOUBLE),
    ("MIN", [INT], [], [3, None, 1], 1, INT),
    ("MAX", [BIGINT], [], [None], None, BIGINT),
    ("MAX", [DOUBLE], [], [1.0, NAN, math.inf], NAN, DOUBLE),
    ("MIN", [DOUBLE], [], [0.0, -0.0, NAN], -0.0, DOUBLE),
    ("MIN", [VARCHAR], [], ["b", "B", None], "B", VARCHAR),
    ("MAX", [BYTES], [], [b"\x01", b"\xff"], b"\xff", BYTES),
    ("MAX", [MONEY], [], [Decimal("1.10"), Decimal("9.00")], Decimal("9.00"), MONEY),
    ("MAX", [DATE], [], [D1, D2], D2, DATE),
    ("MIN", [TIME], [], [T2, T1], T1, TIME),
    ("MAX", [TIMESTAMP], [], [I2, None, I1], I2, TIMESTAMP),
    ("SUM_LIST", [pa.list_(INT)], [], [[1, None, 2], None, []], 3, INT),
    ("SUM_LIST", [pa.list_(DOUBLE)], [], [[0.5], [0.25]], 0.75, DOUBLE),
    ("COLLECT_LIST", [INT], [], [2, None, 2], [2, None, 2], pa.list_(INT)),
    ("COLLECT_LIST", [TIMESTAMP], [], [I1], [I1], pa.list_(TIMESTAMP)),
    ("COLLECT_LIST", [POINT], [], [{"X": 1}], [{"X": 1}], pa.list_(POINT)),
    ("COLLECT_SET", [INT], [], [2, None, 1, 2, None], [2, None, 1], pa.list_(INT)),
    ("COLLECT_SET", [VARCHAR], [], [None, "None", "null"], [None, "None", "null"], pa.list_(VARCHAR)),
    ("COLLECT_SET", [POINT], [], [{"X": 1}, {"X": 1}], [{"X": 1}], pa.list_(POINT)),
    ("COLLECT_SET", [DOUBLE], [], [NAN, NAN, 0.0, -0.0], [NAN, 0.0, -0.0], pa.list_(DOUBLE)),
    ("HISTOGRAM", [VARCHAR], [], ["a", "b", "a", None], {"a": 2, "b": 1}, pa.map_(VARCHAR, BIGINT)),
    ("ATTR", [VARCHAR], [], ["a", "a"], "a", VARCHAR),
    ("ATTR", [VARCHAR], [], ["a", None], None, VARCHAR),
    ("ATTR", [INT], [], [], None, INT),
    ("COUNT_DISTINCT", [INT], [], [1, 2, 1, None], 2, BIGINT),
    ("COUNT_DISTINCT", [pa.list_(INT)], [], [[1], [1], [1, 2]], 2, BIGINT),
    ("EARLIEST_BY_OFFSET", [INT], [], [None, 1, 2], 1, INT),
    ("EARLIEST_BY_OFFSET", [INT], [False], [None, 1], None, INT),
    ("EARLIEST_BY_OFFSET", [INT], [2], [None, 1, 2, 3], [1, 2], pa.list_(INT)),
    ("EARLIEST_BY_OFFSET", [INT], [2, False], [None, 1, 2], [None, 1], pa.list_(INT)),
    ("EARLIEST_BY_OFFSET", [INT], [], [], None, INT),
    ("LATEST_BY_OFFSET", [INT], [], [1, 2, None], 2, INT),
    ("LATEST_BY_OFFSET", [INT], [True], [1, 2, None], 2, INT),
    ("LATEST_BY_OFFSET", [INT], [False], [1, None], None, INT),
    ("LATEST_BY_OFFSET", [VARCHAR], [2], ["a", "b", None, "c"], ["b", "c"], pa.list_(VARCHAR)),
    ("LATEST_BY_OFFSET", [INT], [2, False], [1, 2, None], [2, None], pa.list_(INT)),
    ("STDDEV_SAMP", [INT], [], [1, 2, 3, 4, None], 5 / 3, DOUBLE),
    ("STDDEV_SAMPLE", [DOUBLE], [], [2.0, 4.0, 6.0], 2.0, DOUBLE),
    ("STDDEV_SAMPLE", [BIGINT], [], [7], 0.0, DOUBLE),
    ("CORRELATION", [DOUBLE, DOUBLE], [], [(1.0, 2.0), (2.0, 4.0), (3.0, 6.0), (None, 1.0), (9.0, None)], 1.0, DOUBLE),
    ("CORRELATION", [DOUBLE, DOUBLE], [], [(1.0, 2.0)], NAN, DOUBLE),
    ("TOPK", [INT], [3], [0, 100, 99, 7, None, 100], [100, 100, 99], pa.list_(INT)),
    ("TOPK", [DOUBLE], [2], [1.0, NAN, math.inf], [NAN, math.inf], pa.list_(DOUBLE)),
    ("TOPK", [DATE], [1], [D1, D2], [D2], pa.list_(DATE)),
    ("TOPK", [VARCHAR, VARCHAR], [3],
     [("a", "zero"), ("b", "one"), ("c", "two"), ("b", "three"), ("d", "four"), (None, "five")],
     [{"sort_col": "d", "col0": "four"}, {"sort_col": "c", "col0": "two"}, {"sort_col": "b", "col0": "one"}],
     pa.list_(pa.struct([("sort_col", VARCHAR), ("col0", VARCHAR)]))),
    ("TOPKDISTINCT", [INT], [2], [5, 5, 3, None, 4], [5, 4], pa.list_(INT)),
    ("TOPKDISTINCT", [MONEY], [1], [Decimal("1.00"), Decimal("1.00")], [Decimal("1.00")], pa.list_(MONEY)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "types", "literals", "values", "expected", "type_"), CASES, ids=[f"{c[0]} {c[3]}" for c in CASES]
)
def test_an_aggregate_returns_what_ksqldb_returns(
    name: str, types: list[pa.DataType], literals: list[Any], values: list[Any], expected: Any, type_: pa.DataType
) -> None:
    how = known(name, types, *literals)
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    assert how.result == type_
    found = gives(how, rows)
    if isinstance(expected, float) and not math.isnan(expected):
        assert found == pytest.approx(expected)
        assert math.copysign(1, found) == math.copysign(1, expected)
    else:
        assert repr(found) == repr(expected)


def test_the_variance_of_large_integers_has_the_last_digits_of_ksqldb() -> None:
    how = known("STDDEV_SAMP", [BIGINT])
    assert gives(how, [(9_000_000_011,), (7,), (-5,)]) == 2.7000000059999998e19


def test_a_large_integer_that_is_taken_back_leaves_no_error_in_the_variance() -> None:
    how = known("STDDEV_SAMP", [BIGINT])
    assert how.fold.undo is not None
    state = folded(how.fold, [(2_668_835_601,), (-34,), (90,)])
    assert fold_result(how, how.fold.undo(state, 2_668_835_601)) == 7688.0


def test_every_aggregate_has_a_case() -> None:
    assert {case[0] for case in CASES} == set(BY_NAME)
    assert len(BY_NAME) == 18


@pytest.mark.parametrize(
    ("name", "types", "literals"),
    [
        ("SUM", [VARCHAR], []),
        ("SUM", [NULL], []),
        ("SUM", [INT, INT], []),
        ("AVG", [BOOLEAN], []),
        ("MIN", [BOOLEAN], []),
        ("MAX", [pa.list_(INT)], []),
        ("HISTOGRAM", [INT], []),
        ("SUM_LIST", [INT], []),
        ("SUM_LIST", [pa.list_(VARCHAR)], []),
        ("CORRELATION", [DOUBLE], []),
        ("STDDEV_SAMPLE", [DATE], []),
        ("TOPK", [INT], []),
        ("TOPK", [POINT], [3]),
        ("TOPKDISTINCT", [INT, INT], [3]),
        ("TOPKDISTINCT", [INT], [True]),
        ("LATEST_BY_OFFSET", [INT], [1, 2]),
        ("LATEST_BY_OFFSET", [INT], [True, 2]),
        ("COLLECT_LIST", [NULL], []),
    ],
)
def test_an_aggregate_does_not_take_what_it_has_no_meaning_for(
    name: str, types: list[pa.DataType], literals: list[Any]
) -> None:
    assert call(name, types, *literals) is None


@pytest.mark.parametrize("name", ["TOPK", "TOPKDISTINCT", "EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET"])
def test_none_of_the_values_cannot_be_asked_for(name: str) -> None:
    with pytest.raises(Refused, match="0"):
        call(name, [INT], 0)


@pytest.mark.parametrize("name", ["SUM", "AVG"])
def test_a_record_that_makes_a_sum_outgrow_64_bits_is_not_a_part_of_it(name: str) -> None:
    fold = known(name, [BIGINT]).fold
    state = folded(fold, [(2**63 - 1,)])
    with pytest.raises(OverflowError):
        fold.add(state, 1)
    assert fold.result(state) == pytest.approx(2**63 - 1)


def test_a_record_that_makes_a_sum_outgrow_its_decimal_is_not_a_part_of_it() -> None:
    fold = known("SUM", [decimal(3, 1)]).fold
    state = folded(fold, [(Decimal("99.9"),)])
    with pytest.raises(OverflowError, match=r"DECIMAL\(3, 1\)"):
        fold.add(state, Decimal("0.1"))


def test_values_beyond_a_limit_are_left_out() -> None:
    rows = [(value,) for value in ("a", "b", "a", "c")]
    listed, once, counted = collect_list(2), collect_set(2), histogram(2)
    assert listed.result(folded(listed, rows)) == ["a", "b"]
    assert once.result(folded(once, rows)) == ["a", "b"]
    assert counted.result(folded(counted, rows)) == {"a": 2, "b": 1}


INTS = st.integers(-(2**31), 2**31 - 1)
EXACT = st.integers(-1000, 1000).map(float)
DOUBLES = st.floats(allow_nan=True, allow_infinity=False, width=32)
MONIES = st.decimals(-50, 50, places=2, allow_nan=False)
TEXTS = st.sampled_from(["a", "b", "", "None"])
LISTS = st.lists(st.none() | st.integers(-9, 9), max_size=3)


def column(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.lists(st.tuples(st.none() | values), max_size=12)


PAIRS = st.lists(st.tuples(st.none() | EXACT, st.none() | EXACT), max_size=12)
KINDS: list[tuple[str, list[pa.DataType], list[Any], st.SearchStrategy[list[tuple[Any, ...]]]]] = [
    ("COUNT", [INT], [], column(INTS)),
    ("COUNT", [], [], st.lists(st.just(()))),
    *[(name, [INT], [], column(INTS)) for name in ("SUM", "AVG", "MIN", "MAX")],
    *[(name, [DOUBLE], [], column(EXACT)) for name in ("SUM", "AVG")],
    *[(name, [DOUBLE], [], column(DOUBLES)) for name in ("MIN", "MAX")],
    *[(name, [BIGINT], [], column(INTS)) for name in ("SUM", "MIN")],
    *[(name, [DATE], [], column(st.dates())) for name in ("MIN", "MAX")],
    ("MAX", [TIME], [], column(st.times().map(lambda at: at.replace(microsecond=0, tzinfo=None)))),
    ("MIN", [TIMESTAMP], [], column(st.datetimes(timezones=st.just(dt.UTC)))),
    ("SUM", [MONEY], [], column(MONIES)),
    ("MAX", [MONEY], [], column(MONIES)),
    ("MIN", [VARCHAR], [], column(st.text())),
    ("SUM_LIST", [pa.list_(INT)], [], column(LISTS)),
    ("COLLECT_LIST", [VARCHAR], [], column(TEXTS)),
    ("COLLECT_SET", [VARCHAR], [], column(TEXTS)),
    ("HISTOGRAM", [VARCHAR], [], column(TEXTS)),
    ("ATTR", [VARCHAR], [], column(TEXTS)),
    ("COUNT_DISTINCT", [VARCHAR], [], column(TEXTS)),
    ("EARLIEST_BY_OFFSET", [INT], [2], column(INTS)),
    ("LATEST_BY_OFFSET", [INT], [], column(INTS)),
    ("STDDEV_SAMP", [INT], [], column(INTS)),
    ("STDDEV_SAMPLE", [DOUBLE], [], column(EXACT)),
    ("CORRELATION", [DOUBLE, DOUBLE], [], PAIRS),
    ("TOPK", [INT], [3], column(INTS)),
    ("TOPK", [DOUBLE, INT], [2], st.lists(st.tuples(st.none() | DOUBLES, INTS), max_size=12)),
    ("TOPKDISTINCT", [INT], [3], column(st.integers(0, 5))),
]


UNDONE = [kind for kind in KINDS if known(*kind[:2], *kind[2]).fold.undo is not None]
MERGED = [kind for kind in KINDS if known(*kind[:2], *kind[2]).fold.merge is not None]
PARTED = [kind for kind in KINDS if known(*kind[:2], *kind[2]).parts]
few = settings(max_examples=20)


def each(kinds: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "types", "literals", "rows"), kinds, ids=[f"{k[0]} {k[1]}" for k in kinds])


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        # A root of what rounding leaves of squares of up to a thousand.
        return repr(left) == repr(right) or left == pytest.approx(right, rel=1e-6, abs=1e-4)
    return repr(left) == repr(right)


@given(st.data(), st.integers(0, 12))
@few
@each(MERGED)
def test_merging_two_halves_is_folding_all(
    name: str, types: list[pa.DataType], literals: list[Any], rows: Any, data: Any, cut: int
) -> None:
    how, given_rows = known(name, types, *literals), data.draw(rows)
    assert how.fold.merge is not None
    halves = folded(how.fold, given_rows[:cut]), folded(how.fold, given_rows[cut:])
    assert same(fold_result(how, how.fold.merge(*halves)), gives(how, given_rows))


@given(st.data())
@few
@each(UNDONE)
def test_what_is_taken_back_was_never_there(
    name: str, types: list[pa.DataType], literals: list[Any], rows: Any, data: Any
) -> None:
    how, all_rows = known(name, types, *literals), data.draw(rows)
    assert how.fold.undo is not None
    gone = data.draw(st.lists(st.booleans(), min_size=len(all_rows), max_size=len(all_rows)))
    state = folded(how.fold, all_rows)
    for row, out in zip(all_rows, gone, strict=True):
        state = how.fold.undo(state, *row) if out else state
    wanted = gives(how, [row for row, out in zip(all_rows, gone, strict=True) if not out])
    found = fold_result(how, state)
    if name == "COLLECT_LIST":
        found, wanted = sorted(found, key=repr), sorted(wanted, key=repr)
    if name == "CORRELATION" and (math.isnan(wanted) or math.isnan(found)):
        return
    if isinstance(found, dict):
        found, wanted = sorted(found.items()), sorted(wanted.items())
    assert same(found, wanted)


MERGES = {"count": pc.sum, "sum": pc.sum, "min": pc.min, "max": pc.max}


def merged(part: Part, types: Sequence[pa.DataType], chunks: Sequence[Sequence[Sequence[Any]]]) -> pa.Array:
    """One number of an aggregate, as a query computes it: of each chunk, then of these."""
    found = []
    for rows in chunks:
        columns = [pa.array([row[index] for row in rows], type_) for index, type_ in enumerate(types)]
        if part.compute is None:
            found.append(len(rows))
            continue
        values = part.compute(columns, len(rows))
        assert values.type == part.type
        assert len(values) == len(rows)
        found.append(len(values) - values.null_count if part.op == "count" else MERGES[part.op](values).as_py())
    total = MERGES[part.op](pa.array(found, part.type)).as_py()
    return pa.array([part.initial if total is None else total], part.type)


@given(st.data(), st.integers(0, 12))
@few
@each(PARTED)
def test_parts_that_merge_return_what_the_fold_returns(
    name: str, types: list[pa.DataType], literals: list[Any], rows: Any, data: Any, cut: int
) -> None:
    how, given_rows = known(name, types, *literals), data.draw(rows)
    parts = [merged(part, how.arguments, [given_rows[:cut], given_rows[cut:]]) for part in how.parts]
    column = parts[0].cast(how.result) if how.finish is None else how.finish(parts, 1, how.result)
    assert column.type == how.result
    assert same(rows_of(column)[0], gives(how, given_rows))


def test_what_cannot_be_merged_depends_on_the_order() -> None:
    for name, types, literals, _ in KINDS:
        fold = known(name, types, *literals).fold
        assert fold.merge is not None or fold.order_dependent


def test_tables_are_aggregated_by_what_ksqldb_aggregates_them_with() -> None:
    able = {kind[0] for kind in UNDONE}
    assert {"COUNT", "SUM", "AVG", "COLLECT_LIST", "HISTOGRAM", "ATTR", "SUM_LIST", "CORRELATION"} <= able
    assert not able & {"MIN", "MAX", "TOPK", "TOPKDISTINCT", "COLLECT_SET", "LATEST_BY_OFFSET", "EARLIEST_BY_OFFSET"}


def test_sums_counts_means_and_extremes_of_numbers_merge() -> None:
    for name in ("COUNT", "SUM", "AVG", "MIN", "MAX"):
        for type_ in (INT, BIGINT, DOUBLE):
            assert known(name, [type_]).parts, f"{name} {type_}"


@pytest.mark.parametrize(("name", "types", "literals", "values", "expected", "_"), CASES[:3] + CASES[-4:])
def test_a_fold_travels(
    name: str, types: list[pa.DataType], literals: list[Any], values: list[Any], expected: Any, _: Any
) -> None:
    how = cloudpickle.loads(cloudpickle.dumps(known(name, types, *literals)))
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    assert repr(gives(how, rows)) == repr(expected)
