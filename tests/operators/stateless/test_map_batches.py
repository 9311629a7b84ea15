"""Functions of columns: what they get, what may come back, and what becomes of records that fail."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import recompute
from tests.oracle.records import Input

import potok
from potok import PotokError, StreamsBuilder, TopologyError
from potok.operators.stateless.map_batches import SetupFailedError
from potok.operators.stateless.row_independence import NotRowIndependentError
from potok.testing import TestDriver

EXAMPLES = int(os.environ.get("POTOK_EXAMPLES", "25"))

FIELDS = "i bigint, f double, s string, b boolean, at timestamp, tags array<string>, inner struct<n: int>"


@contextmanager
def driven(
    function: Callable[..., Any], records: list[Any], fields: str = "n bigint", **options: Any
) -> Iterator[TestDriver]:
    """A driver that has run all records through one step, in one batch."""
    builder = StreamsBuilder("batches")
    options.setdefault("value", "r bigint")
    builder.stream("in", value=fields).map_batches(function, name="step", **options).to("out")
    with TestDriver(builder) as driver:
        for number, record in enumerate(records):
            driver.send("in", record, f"k{number}")
        driver.run()
        yield driver


def results(driver: TestDriver) -> dict[str, Any]:
    return {record.key: record.value for record in driver.read("out")}


TYPES = {
    "arrow": "int64, double, string, bool, timestamp[us, tz=UTC], list<item: string>, struct<n: int32>",
    "pandas": "Int64, float64, object, boolean, datetime64[us, UTC], object, object",
    "polars": "Int64, Float64, String, Boolean, Datetime(time_unit='us', time_zone='UTC'), List(String), "
    "Struct({'n': Int32})",
}


@pytest.mark.parametrize("format", ["arrow", "pandas", "polars"])
def test_fields_are_columns_whose_types_do_not_depend_on_their_values(format: Any) -> None:
    def look(frame: Any) -> Any:
        columns = frame.columns if format == "arrow" else [frame[name] for name in frame.columns]
        types = [str(column.type if format == "arrow" else column.dtype) for column in columns]
        return [", ".join(types)] * len(frame)

    full = {"i": 1, "f": 1.5, "s": "x", "b": True, "at": "2026-01-01T00:00:00Z", "tags": ["t"], "inner": {"n": 1}}
    # The driver calls the function with the halves too, of which one has only nulls.
    with driven(look, [full, full, {}, {}], FIELDS, format=format, value=str) as driver:
        assert results(driver) == dict.fromkeys(("k0", "k1", "k2", "k3"), TYPES[format])


def test_pandas_gets_nullable_integers_and_booleans() -> None:
    def look(frame: pd.DataFrame) -> Any:
        assert [str(kind) for kind in frame.dtypes] == ["Int64", "float64", "boolean"]
        return {"r": frame["i"] * 2}

    big = 2**60 + 1
    with driven(look, [{"i": big}, {"f": 1.0}], "i bigint, f double, b boolean", format="pandas") as driver:
        assert results(driver) == {"k0": {"r": 2 * big}, "k1": {"r": None}}


@pytest.mark.parametrize(
    ("format", "function"),
    [
        ("arrow", lambda t: pa.table({"r": pc.add(t["n"], 1)})),
        ("arrow", lambda t: pa.record_batch({"r": pc.add(t["n"], 1).combine_chunks()})),
        ("arrow", lambda t: {"r": pc.add(t["n"], 1), "ignored": t["n"]}),
        ("arrow", lambda t: pa.table({"r": pc.add(t["n"], 1)}).to_struct_array().combine_chunks()),
        ("pandas", lambda df: pd.DataFrame({"r": df["n"] + 1})),
        ("pandas", lambda df: {"r": (df["n"] + 1).to_numpy(dtype="int64")}),
        ("polars", lambda df: df.select(r=pl.col("n") + 1)),
        ("polars", lambda df: {"r": [n + 1 for n in df["n"]]}),
    ],
)
def test_a_result_is_any_frame_or_a_dict_of_columns(format: Any, function: Callable[..., Any]) -> None:
    with driven(function, [{"n": 1}, {"n": 5}], format=format) as driver:
        assert results(driver) == {"k0": {"r": 2}, "k1": {"r": 6}}


@pytest.mark.parametrize(
    ("format", "function"),
    [
        ("arrow", lambda t: pc.add(t["value"], 1)),
        ("pandas", lambda df: df["value"] + 1),
        ("pandas", lambda df: df["value"].to_numpy(dtype="int64") + 1),
        ("polars", lambda df: df["value"] + 1),
        ("polars", lambda df: [n + 1 for n in df["value"]]),
        ("polars", lambda df: df + 1),
    ],
)
def test_values_without_fields_are_one_column(format: Any, function: Callable[..., Any]) -> None:
    with driven(function, [1, 5], "bigint", format=format, value=int) as driver:
        assert results(driver) == {"k0": 2, "k1": 6}


def test_a_null_value_is_not_passed_and_stays() -> None:
    with driven(lambda t: pc.fill_null(t["n"], 7), [{"n": 1}, None, {"n": None}], value=int) as driver:
        assert results(driver) == {"k0": 1, "k1": None, "k2": 7}


def test_without_a_declared_type_results_are_dynamic() -> None:
    with driven(lambda t: {"at": [dt.date(2026, 1, 1)] * len(t), "n": t["n"]}, [{"n": 1}], value=None) as driver:
        assert results(driver) == {"k0": {"at": "2026-01-01", "n": 1}}


def test_only_records_that_fail_alone_are_dead_letters(tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def invert(table: pa.Table) -> Any:
        with calls.open("a") as file:
            file.write(f"{len(table)}\n")
        return {"r": pc.divide(1000, table["n"])}

    records = [{"n": n} for n in range(1, 65)]
    records[37] = {"n": 0}
    with driven(invert, records) as driver:
        assert results(driver) == {f"k{n}": {"r": 1000 // (n + 1)} for n in range(64) if n != 37}
        assert [(letter.offset, letter.step, letter.reason) for letter in driver.dead_letters()] == [
            (37, "step", "error")
        ]
        assert "ArrowInvalid: divide by zero" in driver.dead_letters()[0].error
    # The record is found by halving; the comparison with other chunks finds it twice more.
    assert len(calls.read_text().splitlines()) < 3 * (2 * 6 + 1) + 3


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda t: {"x": t["n"]}, 'the result has no column "r"; it has x'),
        (lambda t: {"r": [0] * (len(t) + 1)}, "the result has 2 rows for 1; pass row_column= to return any number"),
        (lambda t: None, "the function returned NoneType, which is not a frame or a column"),
        (lambda t: {"r": ["x"] * len(t)}, "ArrowInvalid"),
        (lambda t: t["n"], "the result is one column of int64; return a frame, or a dict of columns"),
    ],
)
def test_a_result_that_does_not_fit_is_an_error_of_its_record(function: Callable[..., Any], error: str) -> None:
    with driven(function, [{"n": 1}, {"n": 2}]) as driver:
        assert driver.read("out") == []
        assert [error in letter.error for letter in driver.dead_letters()] == [True, True]


def test_a_required_field_that_is_null_is_an_error_of_its_record() -> None:
    with driven(lambda t: {"r": t["n"]}, [{"n": 1}, {"n": None}], value="r bigint not null") as driver:
        assert results(driver) == {"k0": {"r": 1}}
        assert [letter.error for letter in driver.dead_letters()] == ['field "r" is missing or null']


def test_numbered_rows_become_any_number_of_records_in_their_order() -> None:
    def repeat(df: pl.DataFrame) -> pl.DataFrame:
        return df.select("row", r=pl.int_ranges(0, "n")).explode("r").drop_nulls().reverse()

    records = [{"n": 2}, {"n": 0}, None, {"n": 3}]
    with driven(repeat, records, format="polars", row_column="row") as driver:
        found = [(record.key, record.value) for record in driver.read("out")]
    assert found == [
        ("k0", {"r": 1}),
        ("k0", {"r": 0}),
        ("k2", None),
        ("k3", {"r": 2}),
        ("k3", {"r": 1}),
        ("k3", {"r": 0}),
    ]


def test_numbers_that_were_not_given_are_errors() -> None:
    with driven(lambda t: {"row": pc.add(t["row"], 5), "r": t["n"]}, [{"n": 1}], row_column="row") as driver:
        assert driver.read("out") == []
        assert "has other numbers than it was given" in driver.dead_letters()[0].error


def test_keys_are_a_column_on_request() -> None:
    with driven(lambda t: t["key"], [{"n": 1}, {"n": 2}], with_key=True, value=str) as driver:
        assert results(driver) == {"k0": "k0", "k1": "k1"}


def test_a_model_is_loaded_once_in_a_process(tmp_path: Path) -> None:
    loads = tmp_path / "loads"

    def load() -> int:
        with loads.open("a") as file:
            file.write("x")
        return 10

    builder = StreamsBuilder("models")
    stream = builder.stream("in", value="n bigint")
    stream.map_batches(lambda t, model: pc.multiply(t["n"], model), value=int, setup=load).to("out")
    with TestDriver(builder) as driver:
        for n in range(20):
            driver.send("in", {"n": n}, str(n))
        driver.run(batch_records=3)
        assert sorted(record.value for record in driver.read("out")) == [n * 10 for n in range(20)]
    assert loads.read_text() == "x"


def test_a_setup_that_fails_stops_the_query() -> None:
    def load() -> Any:
        raise FileNotFoundError("model.bin")

    with (
        pytest.raises(SetupFailedError, match=r'setup= of step "step" failed: FileNotFoundError: model\.bin'),
        driven(lambda t, model: t["n"], [{"n": 1}], setup=load, value=int),
    ):
        pass


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda t: pc.subtract(t["n"], pc.min(t["n"])), "it gives 2 in the whole chunk, and 0 in one half of it"),
        (lambda t: pa.array(range(len(t))), "gives"),
        (lambda t: np.random.default_rng().integers(0, 2**60, len(t)), "gives"),
        (lambda t: np.cumsum(t["n"].to_numpy()), "gives"),
    ],
)
def test_the_driver_refuses_a_function_whose_results_depend_on_other_records(
    function: Callable[..., Any], found: str
) -> None:
    records = [{"n": n} for n in (1, 2, 3, 9)]
    with (
        pytest.raises(
            NotRowIndependentError, match='the function of step "step" does not treat records independently'
        ) as raised,
        driven(function, records, value=int),
    ):
        pass
    assert found in str(raised.value)


def test_rounding_is_not_a_difference() -> None:
    with driven(lambda t: np.full(len(t), 0.1) * (1 + 1e-12 * len(t)), [{"n": 1}] * 4, value=float) as driver:
        assert len(driver.read("out")) == 4


def stream_to_out(stream: potok.Stream[Any, Any], builder: StreamsBuilder, **options: Any) -> StreamsBuilder:
    stream.map_batches(lambda t: t, value="n bigint", **options).to("out")
    return builder


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"fields": None}, "a function of columns needs a type, and these values have none"),
        ({"row_column": "n"}, 'the function would get two columns "n"'),
        ({"format": "spark"}, 'there is no format "spark"'),
        ({"setup": lambda: 1}, "takes 1 argument, but it is called with 2"),
    ],
)
def test_mistakes_are_found_when_the_program_is_built(options: dict[str, Any], error: str) -> None:
    builder = StreamsBuilder("wrong")
    stream = builder.stream("in", value=options.pop("fields", "n bigint"))
    with pytest.raises(TopologyError, match=error):
        TestDriver(stream_to_out(stream, builder, **options)).close()


def test_a_field_called_key_cannot_be_next_to_the_key() -> None:
    with (
        pytest.raises(PotokError, match='two columns "key"'),
        driven(lambda t: t, [], "key string", with_key=True, value="key string"),
    ):
        pass


values = st.lists(st.none() | st.fixed_dictionaries({"n": st.none() | st.integers(-3, 3), "s": st.text(max_size=3)}))
FUNCTIONS: list[dict[str, Any]] = [
    {"function": lambda t: {"n": pc.divide(6, t["n"]), "s": pc.utf8_upper(t["s"])}, "format": "arrow"},
    {"function": lambda df: df.assign(n=df["n"] + df["s"].str.len()), "format": "pandas"},
    {"function": lambda df: df.with_columns(n=pl.col("n") * 2), "format": "polars"},
    {
        "function": lambda df: df.filter(pl.col("n") > 0).select("row", "n", s=pl.lit("x")),
        "format": "polars",
        "row_column": "row",
    },
]


@pytest.mark.parametrize("options", FUNCTIONS, ids=lambda options: options["format"])
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(values=values, size=st.integers(1, 7), spread=st.booleans())
def test_results_do_not_depend_on_the_batches(
    options: dict[str, Any], values: list[Any], size: int, spread: bool
) -> None:
    builder = StreamsBuilder("random")
    given_ = {name: item for name, item in options.items() if name != "function"}
    stream = builder.stream("in", value="n bigint, s string")
    stream.map_batches(options["function"], value="n bigint, s string", name="step", **given_).to("out")
    with TestDriver(builder, spread=spread) as driver:
        for number, value in enumerate(values):
            driver.send("in", value, str(number))
        driver.run(batch_records=size)
        found = [(record.key, record.value) for record in driver.read("out")]
        failed = sorted(letter.offset for letter in driver.dead_letters())
    inputs = [Input(str(n).encode(), None if v is None else _json(v), 0, ()) for n, v in enumerate(values)]
    expected = recompute(builder.build(), {"in": {0: inputs}})
    written = [(item.key, item.value) for item in expected.topics["out"].records]
    assert sorted(found, key=repr) == sorted(written, key=repr)
    assert failed == sorted(letter.position.offset for letter in expected.dead_letters)


def _json(value: Any) -> bytes:
    import orjson

    return orjson.dumps(value)
