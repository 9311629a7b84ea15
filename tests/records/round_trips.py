"""What every format of typed columns must do: give back what it wrote, to the millisecond."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from potok.records.formats.registry import format_named
from potok.records.rows import rows_of
from potok.records.schemas.schema import Schema


def to_ms(value: Any) -> Any:
    """The value without what is smaller than a millisecond, and with its zeros' signs as `repr` shows them."""
    if isinstance(value, dt.datetime):
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    if isinstance(value, dict):
        return {name: to_ms(item) for name, item in value.items()}
    return [to_ms(item) for item in value] if isinstance(value, list) else value


def assert_round_trip(name: str, schema: Schema, column: pa.Array) -> None:
    form = format_named(name)
    encoded = form.encode(column, schema)
    assert encoded.errors == {}
    assert encoded.values.type == pa.binary()
    # A slice of a longer column: offsets that do not begin at zero.
    longer = pa.concat_arrays([pa.array([b"\xff", None], pa.binary()), encoded.values]).slice(2)
    decoded = form.decode(longer, schema)
    assert decoded.errors == {}
    assert not isinstance(decoded.column, list)
    decoded.column.validate(full=True)
    assert decoded.column.type == schema.arrow
    assert repr(to_ms(rows_of(decoded.column))) == repr(to_ms(rows_of(column)))
    plain = form.encode(rows_of(column), schema)
    assert plain.errors == {}
    assert plain.values.equals(encoded.values)
