"""Kinds that several databases have in common, and the encodings of Debezium behind them."""

from __future__ import annotations

import functools
from base64 import b64encode

import pyarrow as pa
import pyarrow.compute as pc

from potok.sources.cdc.envelopes.json_columns import each, plain_quoted, quoted, unchanged
from potok.sources.cdc.envelopes.shape import UNAVAILABLE_TEXT, Kind
from potok.sources.cdc.errors import CaptureStopped
from potok.topology.capture import Decimals

UNAVAILABLE_BYTES = f'"{b64encode(UNAVAILABLE_TEXT.encode()).decode()}"'


class NotANumber(CaptureStopped):
    """A numeric value without a representation as bytes."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"the numeric value {text} has no precise form in Debezium's envelope",
            hint='write decimals="string", which can represent it',
        )


def _float(texts: pa.Array) -> pa.Array:
    special = pc.is_in(texts, pa.array(["NaN", "Infinity", "-Infinity"]))
    return pc.if_else(special, plain_quoted(texts), texts) if pc.any(special).as_py() else texts


TEXT = Kind("string", quoted)
INT16, INT32, INT64 = Kind("int16", unchanged), Kind("int32", unchanged), Kind("int64", unchanged)
FLOAT, DOUBLE = Kind("float", _float), Kind("double", _float)
UUID = Kind("string", plain_quoted, "io.debezium.data.Uuid")


def days(texts: pa.Array) -> pa.Array:
    """Return dates as days since 1970."""
    return pc.cast(pc.cast(texts, pa.date32()).view(pa.int32()), pa.string())


def micros(texts: pa.Array) -> pa.Array:
    """Return dates with a time as microseconds since 1970."""
    return pc.cast(pc.cast(texts, pa.timestamp("us")).view(pa.int64()), pa.string())


@functools.cache
def decimal_kind(precision: int, scale: int, decimals: Decimals) -> Kind:
    """Return the kind of decimal numbers, by the option `decimals` of the capture."""
    if decimals == "double":
        return DOUBLE
    if decimals == "string":
        return Kind("string", plain_quoted)
    parameters = (("scale", str(scale)), ("connect.decimal.precision", str(precision)))
    return Kind(
        "bytes",
        each(lambda text: f'"{_unscaled(text, scale)}"'),
        "org.apache.kafka.connect.data.Decimal",
        UNAVAILABLE_BYTES,
        parameters=parameters,
    )


def _unscaled(text: str, scale: int) -> str:
    number, found = decimal_parts(text)
    number = number * 10 ** (scale - found) if scale >= found else number // 10 ** (found - scale)
    return b64encode(signed_bytes(number)).decode()


def decimal_parts(text: str) -> tuple[int, int]:
    """Return the digits of a decimal number as a whole number, and how many of them follow the point."""
    whole, _, fraction = text.partition(".")
    try:
        return int(whole + fraction), len(fraction)
    except ValueError as error:
        raise NotANumber(text) from error


def signed_bytes(number: int) -> bytes:
    """Return a whole number in two's complement, big-endian, in as few bytes as possible, as Java's BigInteger does."""
    bits_ = number.bit_length() if number >= 0 else (number + 1).bit_length()
    return number.to_bytes(bits_ // 8 + 1, "big", signed=True)
