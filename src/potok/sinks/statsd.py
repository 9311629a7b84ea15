"""Send records as StatsD metrics, over UDP."""

from __future__ import annotations

import logging
import math
import re
import socket
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import TopologyError
from potok.records.formats.format import Column
from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed, may_pass
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.destination import destinations
from potok.sinks.sink_spec import Batch, Failures, Opening, Prepared, Rows, SinkSpec, SinkWriter, Types

StatsdType = Literal["c", "g", "ms", "h", "C", "s"]

TYPES = ("c", "g", "ms", "h", "C", "s")
FIELDS = ("type", "value", "rate", "relative", "member")

_NAME = r"^[^\x00-\x20:|\x7f]*[^\x00-\x20:|.\x7f]$"
_MEMBER = re.compile(r"[^\x00-\x1f|\x7f]+")

NOT_A_NAME = "this cannot be the name of a metric: it is empty, ends in a dot, or has a blank, : or |"
NOT_A_NUMBER = "a metric needs a finite number, or a value with the fields value and type"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StatsdTarget(SinkSpec):
    """The address of a StatsD server, and what the metrics are called."""

    verb: ClassVar[str] = "to_statsd"

    address: str
    metric: str
    type: StatsdType
    max_datagram: int

    @property
    def label(self) -> str:
        return f'metrics "{self.metric}" at {self.address}'

    def check(self, types: Types, guarantee: Guarantee) -> None:
        host, colon, port = self.address.rpartition(":")
        if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
            raise TopologyError(f'"{self.address}" is not an address', hint='write "127.0.0.1:8125"')
        if self.type not in TYPES:
            raise TopologyError(f'there is no type "{self.type}" in StatsD', hint=f"use one of {', '.join(TYPES)}")
        if not re.fullmatch(_NAME, self.metric.replace("{key}", "key")):
            raise TopologyError(f'"{self.metric}": {NOT_A_NAME}', hint='write metric="orders.{key}"')
        if not 64 <= self.max_datagram <= 65_507:
            text = f"max_datagram={self.max_datagram} is out of range"
            raise TopologyError(text, hint="write a number from 64 to 65507")
        value = types.value
        if value is not None and pa.types.is_struct(value) and "value" not in [each.name for each in value]:
            hint = 'map the values to numbers, or to {"value": ..., "type": ...}'
            raise TopologyError("the values have no field that is a metric", hint=hint)

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Prepare one line for each metric; a gauge below 0 has two, because a sign makes it relative."""
        names = destinations(self.metric, rows.key)
        good = pc.match_substring_regex(names.values, _NAME).fill_null(False)
        failures: Failures = dict.fromkeys(_rows(pc.invert(good)), NOT_A_NAME)
        fields = _fields(rows.value)
        kind = _filled(fields, "type", pa.string(), self.type)
        failures |= dict.fromkeys(
            _rows(pc.invert(pc.is_in(kind, value_set=pa.array(TYPES)))), f"the type is not one of {', '.join(TYPES)}"
        )
        number, errors = _numbers(fields, kind)
        failures |= errors
        relative = pc.and_(_filled(fields, "relative", pa.bool_(), False), pc.equal(kind, "g"))
        negative = pc.starts_with(number, "-")
        signed = pc.if_else(
            pc.and_(relative, pc.invert(negative)), pc.binary_join_element_wise("+", number, ""), number
        )
        rate, errors = _rates(fields)
        failures |= errors
        line = pc.binary_join_element_wise(names.values, ":", signed, "|", kind, rate, "")
        absolute = pc.and_(pc.and_(pc.equal(kind, "g"), negative), pc.invert(relative))
        line = pc.if_else(absolute, pc.binary_join_element_wise(names.values, ":0|g\n", line, ""), line)
        long = _rows(pc.greater(pc.binary_length(line), self.max_datagram).fill_null(False))
        failures |= dict.fromkeys(long, f"the metric is larger than a datagram of {self.max_datagram} bytes")
        return Prepared(pa.nulls(len(rows), pa.string()), line, {**failures, **names.errors})

    def open(self, opening: Opening) -> SinkWriter:
        return StatsdWriter(self, opening)


class StatsdWriter(SinkWriter):
    """Sends datagrams with as many lines as fit, after the commit. Nobody acknowledges them."""

    def __init__(self, target: StatsdTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._refused = 0
        self._reported = 0
        self._socket = self._opened()

    def _opened(self) -> socket.socket:
        host, _, port = self._target.address.rpartition(":")
        retry = Retry(BRIEFLY_MS)
        while True:
            try:
                found = socket.getaddrinfo(host.removeprefix("[").removesuffix("]"), int(port), type=socket.SOCK_DGRAM)
                # Most servers listen with IPv4 only, and a name such as localhost also has an address of IPv6.
                family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
                opened = socket.socket(family, kind, protocol)
                opened.connect(address)
                return opened
            except OSError as error:
                if not retry.wait():
                    raise self._failed(self._opening.committed + 1, error) from error

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        lines = pa.array(rows.values, pa.string())
        for first, last in _datagrams(lines, self._target.max_datagram):
            data = "\n".join(lines[first:last].to_pylist()).encode()
            try:
                self._send(data, last - first)
            except OSError as error:
                return dict.fromkeys(range(first, len(rows)), f"not sent: {error.strerror or error}")
        return {}

    def _send(self, data: bytes, metrics: int) -> None:
        retry = Retry(GIVE_UP_MS)
        while True:
            try:
                self._socket.send(data)
                return
            except ConnectionRefusedError:
                # The error is that of an earlier datagram, and this one was not sent. Metrics do not wait for a server.
                self._lose(metrics)
                return
            except OSError as error:
                if not may_pass(error) or not retry.wait():
                    raise

    def _lose(self, metrics: int) -> None:
        self._refused += metrics
        if self._refused >= 2 * self._reported:
            self._reported = self._refused
            text = 'step "%s": nobody listens at %s: at least %d metrics are lost'
            log.warning(text, self._opening.step, self._target.address, self._refused)

    def _failed(self, batch: int, error: OSError) -> DeliveryFailed:
        step, label = self._opening.step, self._target.label
        return DeliveryFailed(step, label, batch, error.strerror or str(error), passing=True)

    def close(self) -> None:
        self._socket.close()


def _datagrams(lines: pa.Array, most: int) -> list[tuple[int, int]]:
    """Divide lines, joined by newlines, into datagrams."""
    ends = np.cumsum(np.asarray(pc.binary_length(lines)) + 1)
    found: list[tuple[int, int]] = []
    first, sent = 0, 0
    while first < len(ends):
        last = int(np.searchsorted(ends, sent + most + 1, side="right"))
        found.append((first, last))
        first, sent = last, int(ends[last - 1])
    return found


def _fields(column: Column) -> dict[str, pa.Array]:
    """Return the fields of metrics: the value alone, or with its type, rate and sign."""
    if isinstance(column, list):
        rows = [each if isinstance(each, dict) else {"value": each, "member": each} for each in column]
        return {name: pa.array([_plain(name, row.get(name)) for row in rows], _KINDS[name]) for name in FIELDS}
    if pa.types.is_struct(column.type):
        parts = {each.name: column.field(each.name) for each in column.type if each.name in FIELDS}
        valid = column.is_valid()
        return {name: pc.if_else(valid, part, pa.scalar(None, part.type)) for name, part in parts.items()}
    return {"value": column}


_KINDS = {
    "type": pa.string(),
    "value": pa.string(),
    "rate": pa.float64(),
    "relative": pa.bool_(),
    "member": pa.string(),
}


def _plain(name: str, value: Any) -> Any:
    """Return a field of a value without a type, None if it does not fit; numbers as text, so that none is rounded."""
    kind = _KINDS[name]
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if name == "value":
        fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return repr(value) if fits else None
    if name == "rate":
        return None if value is None else float(value) if isinstance(value, int | float) else math.nan
    return value if isinstance(value, str) else None


def _filled(fields: dict[str, pa.Array], name: str, kind: pa.DataType, default: object) -> pa.Array:
    count = len(next(iter(fields.values())))
    found = fields.get(name)
    if found is None or found.type != kind:
        return pa.repeat(pa.scalar(default, kind), count)
    return found.fill_null(default)


def _numbers(fields: dict[str, pa.Array], kind: pa.Array) -> tuple[pa.Array, Failures]:
    """Return numbers as text; of a set, its members."""
    value = fields["value"]
    if pa.types.is_floating(value.type):
        value = pc.if_else(pc.is_finite(value), value, pa.scalar(None, value.type))
    elif pa.types.is_boolean(value.type) or pa.types.is_nested(value.type):
        value = pa.nulls(len(value), pa.string())
    is_set = pc.equal(kind, "s")
    members = fields.get("member", value)
    text = pc.if_else(is_set, members.cast(pa.string()), value.cast(pa.string()))
    good = pc.if_else(
        is_set,
        pc.match_substring_regex(text, rf"^{_MEMBER.pattern}$"),
        pc.match_substring_regex(text, r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$"),
    ).fill_null(False)
    return text.fill_null(""), dict.fromkeys(_rows(pc.invert(good)), NOT_A_NUMBER)


def _rates(fields: dict[str, pa.Array]) -> tuple[pa.Array, Failures]:
    """Return the suffixes of sampled metrics."""
    rate = fields.get("rate")
    if rate is None or not (pa.types.is_floating(rate.type) or pa.types.is_integer(rate.type)):
        return pa.repeat("", len(fields["value"])), {}
    rate = rate.cast(pa.float64()).fill_null(1.0)
    good = pc.and_(pc.greater(rate, 0.0), pc.less_equal(rate, 1.0))
    text = pc.binary_join_element_wise("|@", rate.cast(pa.string()), "")
    failures = dict.fromkeys(_rows(pc.invert(good)), "the rate is not between 0 and 1")
    return pc.if_else(pc.less(rate, 1.0), text, ""), failures


def _rows(flags: pa.Array) -> list[int]:
    found: list[int] = pc.indices_nonzero(flags).to_pylist()
    return found
