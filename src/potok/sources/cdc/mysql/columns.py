"""Turn values of the binary log, as they are in its rows, into columns of the text that the server prints for them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sources.cdc.envelopes.shape import Read

Raw = np.ndarray[Any, np.dtype[np.uint8]]
Numbers = np.ndarray[Any, np.dtype[Any]]

_DATETIME_BIAS = 0x8000000000
_DIGITS = {"s": 0, "ms": 3, "us": 6}
_BEFORE_FRACTION = len("2024-01-01 00:00:00.")


def fixed(width: int, convert: Callable[[Raw], pa.Array]) -> Read:
    """Return a reader of values that all have so many bytes: `convert` gets them as the rows of a matrix."""

    def read(values: Sequence[Any]) -> pa.Array:
        if None not in values:
            return convert(_matrix(values, width))
        missing = np.fromiter((value is None for value in values), np.bool_, len(values))
        found = convert(_matrix([value for value in values if value is not None], width))
        return found.take(pa.array(np.cumsum(~missing) - 1, pa.int64(), mask=missing))

    return read


def each_value(convert: Callable[[bytes], bytes | str]) -> Read:
    """Return a reader that converts values one by one."""

    def read(values: Sequence[Any]) -> pa.Array:
        return pa.array([None if value is None else convert(value) for value in values], pa.string())

    return read


def integer(size: int, *, unsigned: bool) -> Read:
    def convert(raw: Raw) -> pa.Array:
        if size == 3:
            numbers = _little_endian(raw)
            found = numbers if unsigned else np.where(numbers >= 1 << 23, numbers - (1 << 24), numbers)
        else:
            found = raw.view(f"<{'u' if unsigned else 'i'}{size}").ravel()
        return _texts(found)

    return fixed(size, convert)


def real(size: int) -> Read:
    return fixed(size, lambda raw: _texts(raw.view(f"<f{size}").ravel()))


def bits(count: int) -> Read:
    size = (count + 7) // 8
    return fixed(size, lambda raw: _texts(_big_endian(raw)))


def year() -> Read:
    return fixed(1, lambda raw: _texts(np.where(raw[:, 0] == 0, 0, raw[:, 0].astype(np.int64) + 1900)))


def label(size: int, labels: tuple[str, ...]) -> Read:
    """Read values of an ENUM; the number 0 is the empty text of a value that was not valid."""
    known = pa.array(["", *labels], pa.string())
    return fixed(size, lambda raw: known.take(pa.array(_little_endian(raw))))


def labels_set(labels: tuple[str, ...]) -> Read:
    known: dict[bytes, str] = {}

    def text(value: bytes) -> str:
        found = known.get(value)
        if found is None:
            number = int.from_bytes(value, "little")
            found = known[value] = ",".join(each for at, each in enumerate(labels) if number >> at & 1)
        return found

    return each_value(text)


def characters(encoding: str | None) -> Read:
    """Read texts; `encoding` is None if they are UTF-8 already."""

    def read(values: Sequence[Any]) -> pa.Array:
        if encoding is None or (not encoding.startswith("utf") and b"".join(filter(None, values)).isascii()):
            return pa.array(values, pa.string())
        return pa.array([None if value is None else _decoded(value, encoding) for value in values], pa.string())

    return read


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "cp1252":
            raise
        # The latin1 of the server has control characters where Windows has nothing.
        return "".join(bytes([each]).decode("cp1252", "replace").replace("\ufffd", chr(each)) for each in data)


def binary(padded: int = 0) -> Read:
    """Read bytes as base64; the log leaves out the zeros at the end of a BINARY."""
    return each_value(lambda value: b64encode(value.ljust(padded, b"\0")))


def date() -> Read:
    def convert(raw: Raw) -> pa.Array:
        number = _little_endian(raw)
        years, months, days = number >> 9, number >> 5 & 15, number & 31
        found, exist = _days(years, months, days)
        if exist.all():
            return pc.cast(pa.array(found.astype(np.int32), pa.date32()), pa.string())
        rows = zip(years.tolist(), months.tolist(), days.tolist(), strict=True)
        return pa.array([f"{y:04d}-{m:02d}-{d:02d}" for y, m, d in rows], pa.string())

    return fixed(3, convert)


def date_time(scale: int) -> Read:
    size = (scale + 1) // 2

    def convert(raw: Raw) -> pa.Array:
        number = _big_endian(raw[:, :5]) - _DATETIME_BIAS
        years, months = np.divmod(number >> 22, 13)
        clock = (number >> 12 & 31) * 3600 + (number >> 6 & 63) * 60 + (number & 63)
        days, exist = _days(years, months, number >> 17 & 31)
        micros = _micros(raw[:, 5:], scale)
        found = _instants((np.where(exist, days, 0) * 86_400 + clock) * 1_000_000 + micros, scale)
        if exist.all():
            return found
        # Dates that do not exist are written as the server prints them.
        fields = zip(years.tolist(), months.tolist(), (number >> 17 & 31).tolist(), found.to_pylist(), strict=True)
        return pa.array([f"{y:04d}-{m:02d}-{d:02d}{text[10:]}" for y, m, d, text in fields], pa.string())

    return fixed(5 + size, convert)


def timestamp(scale: int) -> Read:
    """Read times of UTC; zero is the date that does not exist."""
    size = (scale + 1) // 2
    zero = "0000-00-00 00:00:00" + (f".{'0' * scale}" if scale else "")

    def convert(raw: Raw) -> pa.Array:
        seconds, micros = _big_endian(raw[:, :4]), _micros(raw[:, 4:], scale)
        found = _instants(seconds * 1_000_000 + micros, scale)
        gone = (seconds == 0) & (micros == 0)
        return pc.if_else(pa.array(gone), zero, found) if gone.any() else found

    return fixed(4 + size, convert)


def _instants(micros: Numbers, scale: int) -> pa.Array:
    """Return instants as text with so many digits of a second."""
    unit = next(unit for unit, digits in _DIGITS.items() if scale <= digits)
    per_unit = 10 ** (6 - _DIGITS[unit])
    texts = pc.cast(pa.array(micros // per_unit, pa.timestamp(unit)), pa.string())
    return texts if scale in _DIGITS.values() else pc.utf8_slice_codeunits(texts, 0, _BEFORE_FRACTION + scale)


def _days(years: Numbers, months: Numbers, days: Numbers) -> tuple[Numbers, Numbers]:
    """Return the days since 1970, and which of the dates exist."""
    first = ((years - 1970) * 12 + months - 1).astype("M8[M]")
    found = first.astype("M8[D]") + (days - 1).astype("m8[D]")
    exist = (years > 0) & (months > 0) & (days > 0) & (found.astype("M8[M]") == first)
    return found.astype(np.int64), exist


def _micros(raw: Raw, scale: int) -> Numbers:
    """Return fractions of a second; the log has their digits in pairs."""
    if not scale:
        return np.zeros(len(raw), np.int64)
    return np.asarray(_big_endian(raw) * 10 ** (6 - 2 * ((scale + 1) // 2)))


def _matrix(values: Sequence[bytes], width: int) -> Raw:
    return np.frombuffer(b"".join(values), np.uint8).reshape(-1, width)


def _little_endian(raw: Raw) -> Numbers:
    return _big_endian(raw[:, ::-1])


def _big_endian(raw: Raw) -> Numbers:
    kind = np.uint64 if raw.shape[1] > 7 else np.int64
    found = np.zeros(len(raw), kind)
    for column in range(raw.shape[1]):
        found = found << kind(8) | raw[:, column].astype(kind)
    return found


def _texts(numbers: Numbers) -> pa.Array:
    return pc.cast(pa.array(np.ascontiguousarray(numbers)), pa.string())
