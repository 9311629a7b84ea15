"""The options of the data source: which table or topic to read, and which part of it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from potok.clock import parse_epoch_ms
from potok.errors import QueryError
from potok.settings import Settings

EARLIEST, LATEST = "earliest", "latest"

Offsets = Literal["earliest", "latest"] | dict[int, int]
"""The first or last offsets of a topic, or offsets by partition; a partition that is not named has the default."""

SnapshotMode = Literal["auto", "direct", "copy"]


class BadOptionError(QueryError):
    """An option of the data source that is unknown, missing or wrong."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(f'spark.read.format("potok"): {text}', hint=hint)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """A table of a query, and the instant or the batch to read."""

    broker: str
    table: str
    query: str | None = None
    as_of_batch: int | None = None
    as_of: int | None = None
    snapshot: SnapshotMode = "auto"
    copies: str | None = None
    starting: Literal["earliest", "latest"] = "earliest"
    changes: bool = False
    """Whether a streaming query reads the changes of the table."""


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """A topic, the range of offsets or of time, and the types of keys and values."""

    broker: str
    topic: str
    key: str | None = None
    value: str | None = None
    key_format: str | None = None
    value_format: str | None = None
    starting_offsets: Offsets | None = None
    ending_offsets: Offsets | None = None
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    mode: Literal["failfast", "permissive"] = "failfast"
    records_per_partition: int = 1_000_000
    max_offsets_per_trigger: int | None = None


def parse_options(given: Mapping[str, str]) -> TableOptions | TopicOptions:
    """Parse the options of a reader, whose names are not case-sensitive."""
    options = {name.lower(): text for name, text in given.items()}
    if ("table" in options) == ("topic" in options):
        raise BadOptionError(
            "it reads one table or one topic", 'write .option("table", "counts") or .option("topic", "t")'
        )
    kind = TableOptions if "table" in options else TopicOptions
    known = list(kind.__dataclass_fields__)
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"its options: {', '.join(known)}"
            raise BadOptionError(f'there is no option "{name}"', hint)
    broker = options.pop("broker", None) or Settings.load().broker
    values: dict[str, Any] = {
        name: _PARSERS[name](name, text) if name in _PARSERS else text for name, text in options.items()
    }
    return kind(broker, **values)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise BadOptionError(f'the option {name} is not a number: "{text}"', f'write .option("{name}", 1000)')
    return int(text)


def _positive(name: str, text: str) -> int:
    number = _number(name, text)
    if number < 1:
        raise BadOptionError(f"the option {name} is too small: {text}", f'write .option("{name}", 1000)')
    return number


def _instant(name: str, text: str) -> int:
    try:
        return int(text) if text.lstrip("-").isdecimal() else parse_epoch_ms(text)
    except ValueError as error:
        hint = "write milliseconds since 1970, or 2026-01-31T12:00:00Z"
        raise BadOptionError(f'the option {name} is not an instant: "{text}"', hint) from error


def _choice(*choices: str) -> Callable[[str, str], str]:
    def parse(name: str, text: str) -> str:
        if text.lower() not in choices:
            raise BadOptionError(f'the option {name} cannot be "{text}"', f"choose {' or '.join(choices)}")
        return text.lower()

    return parse


def _offsets(name: str, text: str) -> Offsets:
    if text.lower() in (EARLIEST, LATEST):
        return cast(Offsets, text.lower())
    try:
        found = json.loads(text)
        return {int(partition): int(offset) for partition, offset in found.items()}
    except (ValueError, AttributeError, TypeError) as error:
        hint = """write earliest, latest, or offsets by partition: {"0": 100, "1": 250}"""
        raise BadOptionError(f"the option {name} cannot be read: {text}", hint) from error


_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "changes": lambda name, text: _choice("true", "false")(name, text) == "true",
    "as_of_batch": _number,
    "as_of": _instant,
    "snapshot": _choice("auto", "direct", "copy"),
    "starting": _choice(EARLIEST, LATEST),
    "starting_offsets": _offsets,
    "ending_offsets": _offsets,
    "starting_timestamp": _instant,
    "ending_timestamp": _instant,
    "mode": _choice("failfast", "permissive"),
    "records_per_partition": _positive,
    "max_offsets_per_trigger": _positive,
}
