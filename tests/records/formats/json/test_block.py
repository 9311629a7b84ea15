from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.records.formats.json.block import instants_of
from potok.records.formats.json.json_format import decode_rows, decode_typed
from potok.records.schemas.ddl import parse_ddl
from records.texts import NUMBERS, STRINGS, TRAPS

DECLARED = parse_ddl("a bigint, b double, e array<string>, f struct<x: bigint, y: double>")
GOOD = b'{"a":1,"b":2.5,"e":["x"],"f":{"x":1,"y":0.5}}'


def agrees(*texts: bytes) -> bool:
    """Whether the block way and the row way read these values the same, down to the sign of a zero."""
    values = pa.array(texts, pa.binary())
    block, rows = decode_typed(values, DECLARED), decode_rows(values, DECLARED)
    return block.errors == rows.errors and repr(block.column.to_pylist()) == repr(rows.column.to_pylist())


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap[:24])
def test_each_format_trap_is_isolated_wherever_it_occurs(trap: str) -> None:
    text = trap.encode()
    assert agrees(text)
    assert agrees(text, GOOD)
    assert agrees(GOOD, text)
    assert agrees(GOOD, text, GOOD)
    assert agrees(text, text)


@pytest.mark.parametrize("item", [*NUMBERS, *STRINGS, "true", "null", "[]", "{}"])
def test_an_item_means_the_same_in_every_field_and_in_one_that_is_not_asked_for(item: str) -> None:
    for name in ("a", "b", "e", "f", "z"):
        assert agrees(GOOD, f'{{"{name}":{item}}}'.encode())
    for text in (f'{{"e":[{item}]}}', f'{{"f":{{"y":{item}}}}}', f'{{"z":[{{"a":{item}}}]}}'):
        assert agrees(GOOD, text.encode())


@pytest.mark.parametrize(
    "texts",
    [
        # As many objects as values, but not one in each.
        [b'{"a":1}{"a":2}', b'{"f":', b'{"x":1}}'],
        [b'{"f":', b'{"x":1}}', b'{"a":1}{"a":2}'],
        [b'{"f":', b'{"x":1}}'],
        [b'{"a":1}{"a":2}', b""],
        [b'{"a":1}\n{"a":2}', b"null"],
        # A string that the next value would close.
        [b'{"z":"', b'{"a":1}'],
        [b'{"z":"', b'"}'],
        [b'{"a":1}\n', b'\n{"a":2}', b'{"a"\n:\r\n3}'],
    ],
)
def test_values_that_only_look_equal_when_concatenated_are_distinguished(texts: list[bytes]) -> None:
    assert agrees(*texts)
    assert agrees(GOOD, *texts, GOOD)


def test_a_value_cannot_add_to_the_object_that_it_is_read_in() -> None:
    for text in (b'{"a":1},"z":{}', b'{"a":1}],"z":[{}', b'{"a":1}},"z":{{}'):
        assert list(decode_typed(pa.array([text, GOOD], pa.binary()), DECLARED).errors) == [0]


def test_invalid_utf8_is_found_inside_and_outside_of_fields() -> None:
    for text in (b'{"a":1,"e":["\xff"]}', b'{"a":1,"z":"\xed\xa0\x80"}', b'{"a":1,"\xc3":1}'):
        assert agrees(text, GOOD)
        assert list(decode_typed(pa.array([GOOD, text], pa.binary()), DECLARED).errors) == [1]


def test_a_block_may_hold_no_object_at_all() -> None:
    assert agrees(b"", b"null", b"[]", b" {}", b"{}")


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
