from __future__ import annotations

import datetime as dt

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from potok.records.formats.json.instants import instants_of

UTC = pa.timestamp("us", "UTC")
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))


@given(
    st.lists(
        st.datetimes(min_value=dt.datetime(2, 1, 1), max_value=dt.datetime(9998, 1, 1), timezones=ZONES), max_size=5
    )
)
def test_iso_text_is_read_as_python_reads_it(instants: list[dt.datetime]) -> None:
    column, unsure = instants_of(pa.array([at.isoformat() for at in instants], pa.string()), UTC)
    assert not unsure.any()
    assert column.to_pylist() == instants


def test_what_python_might_read_otherwise_is_left_to_it() -> None:
    texts = ["2025-01-01", None, "2025-01-01T00:00:00Z", "x", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00"]
    column, unsure = instants_of(pa.array(texts), UTC)
    assert unsure.tolist() == [True, False, False, True, True, True]
    assert [item is None for item in column.to_pylist()] == [True, True, False, True, True, True]


def test_one_impossible_day_makes_all_texts_unsure() -> None:
    column, unsure = instants_of(pa.array(["2025-02-30T00:00:00Z", None, "2025-01-01T00:00:00Z"]), UTC)
    assert unsure.tolist() == [True, False, True]
    assert column.null_count == 3


def test_milliseconds_outside_of_pythons_years_are_unsure() -> None:
    column, unsure = instants_of(pa.array([0, None, 2**62, -62_135_596_800_000, 253_402_300_799_999]), UTC)
    assert unsure.tolist() == [False, False, True, False, False]
    assert [at and at.year for at in column.to_pylist()] == [1970, None, None, 1, 9999]
