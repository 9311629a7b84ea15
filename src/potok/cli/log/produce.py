"""`potok produce`: append each line of a file or of stdin as a record."""

from __future__ import annotations

import difflib
import json
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import note, print_json, warn
from potok.clock import epoch_ms
from potok.errors import Location, PotokError
from potok.records.log_record import NO_TIMESTAMP, LogRecord
from potok.records.position import Position

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log

app = command_app()

_ENOUGH_BYTES = 4 << 20


class BadLine(PotokError):
    """A line does not have the form that the options require."""


class NoSuchTopic(PotokError):
    """The topic does not exist, and --no-create is set."""


@app.command()
def produce(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic to append to.")],
    file: Annotated[str, typer.Argument(help="File to read; - for stdin.")] = "-",
    key_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Lines are JSON; this field is the key.")
    ] = None,
    key_separator: Annotated[str | None, typer.Option(metavar="TEXT", help="Separator between key and value.")] = None,
    timestamp_field: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Lines are JSON; this field is the time: milliseconds, or ISO 8601."),
    ] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A header; may be repeated.")] = None,
    null: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text that means a null value, which deletes the key in a table.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Append to this partition, regardless of the keys.")
    ] = None,
    skip: Annotated[
        int, typer.Option(min=0, metavar="LINES", help="Skip this many lines, which are already appended.")
    ] = 0,
    no_create: Annotated[bool, typer.Option("--no-create", help="Refuse a topic that does not exist.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Append lines to a topic, creating it if needed. A line is durable once the next one can be typed.

    All lines of a file, even if it is stdin, are checked before the first is appended. Lines of a pipe are
    appended as they arrive; if one is invalid, the error names the --skip that appends the rest.
    """
    form = LineForm(
        key_field=key_field,
        key_separator=key_separator.encode() if key_separator else None,
        timestamp_field=timestamp_field,
        headers=tuple(_header(text) for text in header or ()),
        null=None if null is None else null.encode(),
    )
    name = "stdin" if file == "-" else file
    from potok.log.broker import position_of

    with opened_log(context, broker, create=not no_create) as log, _opened(file) as descriptor:
        start = _start_of_file(descriptor)
        if start is not None and form.may_refuse:
            for _ in record_batches(descriptor, form, name, skip):
                pass
            os.lseek(descriptor, start, os.SEEK_SET)
        _make_sure_of(topic, log, create=not no_create)
        count, position = 0, Position()
        try:
            for batch in record_batches(descriptor, form, name, skip):
                if batch:
                    position |= position_of(topic, log.append(topic, batch, partition))
                count += len(batch)
        except BadLine as error:
            if count and error.at is not None:
                error.hint = f"{error.hint}; the lines before it were appended; --skip {error.at.line - 1} skips them"
            raise
        finally:
            if as_json:
                print_json({"topic": topic, "records": count, "position": str(position)})
            else:
                note(f'appended {count:,} record{"" if count == 1 else "s"} to "{topic}"')


def _make_sure_of(topic: str, log: Log, *, create: bool) -> None:
    """Create the topic if it does not exist; warn if the name resembles that of an existing topic."""
    if log.has_topic(topic):
        return
    close = difflib.get_close_matches(topic, log.topics(), n=1, cutoff=0.75)
    if not create:
        hint = f'did you mean "{close[0]}"?' if close else f"potok topics create {topic}"
        raise NoSuchTopic(f'there is no topic "{topic}"', hint=hint)
    log.create_topic(topic, exist_ok=True)
    note(f'created topic "{topic}" with one partition')
    if close:
        warn(f'did you mean "{close[0]}"? potok topics delete {topic} removes the new one')


@dataclass(frozen=True, slots=True)
class LineForm:
    """How to parse a line into a record."""

    key_field: str | None = None
    key_separator: bytes | None = None
    timestamp_field: str | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    null: bytes | None = None

    @property
    def may_refuse(self) -> bool:
        """Whether a line can be invalid."""
        return bool(self.key_field or self.key_separator or self.timestamp_field)

    def record(self, line: bytes, at: Location) -> LogRecord:
        key, value = self._split(line, at)
        timestamp_ms = NO_TIMESTAMP
        if self.key_field or self.timestamp_field:
            fields = _fields(value, at)
            if self.key_field:
                key = _key(_field(fields, self.key_field, at))
            if self.timestamp_field:
                timestamp_ms = _milliseconds(_field(fields, self.timestamp_field, at), at)
        return LogRecord(key, None if value == self.null else value, timestamp_ms, self.headers)

    def _split(self, line: bytes, at: Location) -> tuple[bytes | None, bytes]:
        if self.key_separator is None:
            return None, line
        key, found, value = line.partition(self.key_separator)
        if not found:
            separator = self.key_separator.decode()
            raise BadLine(f'no "{separator}" in the line', hint=f"write it as KEY{separator}VALUE", at=at)
        return key, value


def record_batches(descriptor: int, form: LineForm, file: str, skip: int = 0) -> Iterator[list[LogRecord]]:
    """Yield the records of the lines after the first `skip`. Those before an invalid line are yielded before it raises,
    so that its number is where to resume."""
    number = 0
    for lines in line_blocks(descriptor):
        records: list[LogRecord] = []
        for line in lines:
            number += 1
            if number <= skip:
                continue
            try:
                records.append(form.record(line, Location(file, number)))
            except BadLine:
                yield records
                raise
        yield records


def line_blocks(descriptor: int) -> Iterator[list[bytes]]:
    """Yield blocks of available lines, a few megabytes at most, without waiting for a pipe that pauses."""
    rest = b""
    while chunk := _available(descriptor):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


def _available(descriptor: int) -> bytes:
    """Read at least one byte; empty at the end of the input."""
    parts = [os.read(descriptor, 1 << 20)]
    size = len(parts[0])
    readable = select.poll()
    readable.register(descriptor, select.POLLIN | select.POLLHUP)
    while parts[-1] and size < _ENOUGH_BYTES and readable.poll(0):
        parts.append(os.read(descriptor, 1 << 20))
        size += len(parts[-1])
    return b"".join(parts)


def _start_of_file(descriptor: int) -> int | None:
    """Return the current offset if the descriptor is a regular file, which can be read twice."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    return os.lseek(descriptor, 0, os.SEEK_CUR)


@contextmanager
def _opened(file: str) -> Iterator[int]:
    if file == "-":
        yield sys.stdin.fileno()
        return
    try:
        opened = Path(file).open("rb")  # noqa: SIM115 - closed below, so that only the opening is guarded
    except OSError as error:
        raise BadLine(f'cannot read "{file}": {error.strerror}', hint="name a file, or - for stdin") from error
    with opened:
        yield opened.fileno()


def _header(text: str) -> tuple[str, bytes]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise typer.BadParameter(f'"{text}" is not NAME=VALUE', param_hint="--header")
    return name, value.encode()


def _fields(value: bytes, at: Location) -> dict[str, Any]:
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"the line is not JSON: {error}", hint="each line must be one JSON object", at=at) from error
    if not isinstance(fields, dict):
        raise BadLine("the line is not a JSON object", hint="each line must be one JSON object", at=at)
    return fields


def _field(fields: dict[str, Any], name: str, at: Location) -> Any:
    if name not in fields:
        raise BadLine(f'there is no field "{name}" in the line', hint=f"its fields: {', '.join(fields)}", at=at)
    return fields[name]


def _key(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()


def _milliseconds(value: Any, at: Location) -> int:
    hint = "write milliseconds since 1970, or a time such as 2026-01-31T12:00:00Z"
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            found = int(value)
        else:
            found = epoch_ms(datetime.fromisoformat(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise BadLine(f"{json.dumps(value)} is not a time", hint=hint, at=at) from error
    if not -(1 << 63) <= found < 1 << 63:
        raise BadLine(f"{json.dumps(value)} does not fit into 64 bits", hint=hint, at=at)
    return found
