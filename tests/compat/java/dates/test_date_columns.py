"""What is computed for a whole column is what is computed row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.compat.java.dates.columns import show_all
from potok.compat.java.dates.formatting import show
from potok.compat.java.dates.patterns import pattern_of
from potok.compat.java.dates.reading_columns import read_all
from potok.compat.java.dates.zones import UTC, zone_named
from potok.sql.functions.dates.formats import _instant
from potok.sql.functions.dates.parsing import milliseconds_of, milliseconds_of_all
from potok.sql.functions.function import Context, ScalarFunction
from potok.sql.functions.registry import function_named
from potok.sql.types import TIMESTAMP, VARCHAR

PATTERNS = [
    "yyyy-MM-dd",
    "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "uuuuMMddHHmmssSSSSSS",
    "dd/MM/yy KK hh kk a",
    "EEE, dd MMM yyyy, DDD",
    "HH 'Uhr é'",
    "EEEE d. MMMM y, H:mm:ss",
    "M/d/yy h a",
]
ZONES = ["UTC", "+05:30", "Europe/Paris", "America/St_Johns", "Australia/Lord_Howe", "Africa/Monrovia"]
INSTANTS = st.integers(-62_135_596_800_000, 253_402_300_799_999)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(instants=st.lists(INSTANTS, min_size=1, max_size=20))
def test_moments_are_shown_at_once_as_one_by_one(pattern: str, instants: list[int]) -> None:
    local = np.array(instants, np.int64)
    rendered = show_all(pattern_of(pattern), local // 86_400_000, local % 86_400_000 * 1_000_000)
    assert rendered is not None
    rendered.validate(full=True)
    assert rendered.to_pylist() == [show(pattern_of(pattern), _instant(instant, UTC)) for instant in instants]


@pytest.mark.parametrize("pattern", ["zzzz", "yyyy XXX", "[HH]", "ppHH", "yyyy", "G", "n"])
def test_unusual_values_are_converted_row_by_row(pattern: str) -> None:
    days = np.array([3_000_000], np.int64)
    assert show_all(pattern_of(pattern), days, np.array([0], np.int64)) is None


MUTATIONS = st.tuples(st.integers(0, 25), st.sampled_from(["", "0", "3", "9", "-", " ", "x", "é", "Z"]))


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss.SSS", "uuuuMMddHHmm", "HH:mm:ss", "yyyy-MM-dd'T'HHXXX", "HHmm Z"]
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
@given(
    shown_in=st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York"]),
    instants=st.lists(st.tuples(st.integers(0, 4_000_000_000_000), st.none() | MUTATIONS), min_size=1, max_size=12),
    skipped=st.integers(0, 1),
)
def test_texts_are_read_at_once_as_one_by_one(
    pattern: str, zone: str, shown_in: str, instants: list[tuple[int, tuple[int, str] | None]], skipped: int
) -> None:
    texts = []
    for instant, change in instants:
        text = show(pattern_of(pattern), _instant(instant, zone_named(shown_in)))
        texts.append(text if change is None else text[: change[0]] + change[1] + text[change[0] + 1 :])
    column = pa.array([*texts, None], VARCHAR)[skipped:]
    read = milliseconds_of_all(column, pattern, zone_named(zone))
    assert read is not None
    for text, fits, milliseconds in zip(column.to_pylist(), *read, strict=True):
        if fits:
            assert milliseconds == milliseconds_of(text, pattern, zone)


def test_plain_texts_are_read_at_once() -> None:
    found = read_all(pattern_of("yyyy-MM-dd"), pa.array(["2021-02-30", "2021-02-3", "20x1-01-01", None, "2021-12-01"]))
    assert found is not None
    assert found.fits.tolist() == [True, False, False, False, True]
    assert found.beyond.tolist()[0]
    assert found.days.tolist()[0] == 18686


@pytest.mark.parametrize("zone", ZONES)
@given(seconds=st.lists(st.integers(-4_000_000_000, 8_000_000_000), max_size=30), local=st.booleans())
def test_offsets_are_found_at_once_as_one_by_one(zone: str, seconds: list[int], local: bool) -> None:
    found = zone_named(zone)
    one = found.offset_of if local else found.offset_at
    assert found.offsets(np.array(seconds, np.int64), local=local).tolist() == [one(second) for second in seconds]


def test_offsets_of_a_zone_are_shown_at_once() -> None:
    moments = pa.array([1609459200_000_000, 1625097600_000_000, None], TIMESTAMP)
    repeated = [pa.repeat(pa.scalar(text), 3) for text in ("VV O xx v", "Europe/Paris")]
    rendered, failures = call("FORMAT_TIMESTAMP", moments, *repeated)
    assert rendered == ["Europe/Paris GMT+1 +0100 CET", "Europe/Paris GMT+2 +0200 CET", None]
    assert failures == {}


def call(name: str, *columns: pa.Array) -> tuple[list[Any], dict[int, str]]:
    function = function_named(name)
    assert isinstance(function, ScalarFunction)
    context = Context()
    overload = function.overloads[0]
    accepted = overload.accept([column.type for column in columns])
    assert accepted is not None
    return overload.compute(columns, len(columns[0]), accepted.result, context).to_pylist(), context.failures


def test_rows_may_have_patterns_and_zones_of_their_own() -> None:
    moments = pa.array([0, 0, 0, None], TIMESTAMP)
    patterns = pa.array(["yyyy", "HH:mm", "q{", "yyyy"])
    rendered, failures = call("FORMAT_TIMESTAMP", moments, patterns, pa.array(["UTC", "Asia/Tokyo", "UTC", "UTC"]))
    assert rendered == ["1970", "09:00", None, None]
    assert list(failures) == [2]
