"""Format options, which follow the name: `"sql_delimited;delimiter=|"`, `"avro;wrap=false"`."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, cast

from potok.errors import SchemaError
from potok.records.formats.format import Format
from potok.records.formats.unwrapped import UnwrappedFormat

_BOOLEANS = {"true": True, "false": False}
# A value may be the semicolon itself, but only alone.
_OPTION = re.compile(r"(\w+)=(;|[^;]+)(?:;|$)")


def with_options(found: Any, name: str, options: str) -> Format:
    """Return the format with these options; every format has `wrap`, the others are fields of its class."""
    given = _parse(name, options)
    wrap = given.pop("wrap", "true")
    if wrap.lower() not in _BOOLEANS:
        raise SchemaError(f'format "{name}" cannot have wrap={wrap}', hint="write wrap=true or wrap=false")
    full = f"{name};{options}"
    known = {field.name for field in dataclasses.fields(found)} - {"name"} if isinstance(found, type) else set()
    for option in given.keys() - known:
        hint = f"the options are {', '.join(sorted(known | {'wrap'}))}"
        raise SchemaError(f'format "{name}" has no option "{option}"', hint=hint)
    made = cast(Format, found(**given, name=full) if isinstance(found, type) else found)
    return made if _BOOLEANS[wrap.lower()] else UnwrappedFormat(made, full)


def _parse(name: str, options: str) -> dict[str, str]:
    given: dict[str, str] = {}
    position = 0
    while position < len(options):
        found = _OPTION.match(options, position)
        if found is None:
            hint = "write option=value behind a semicolon, for example ;wrap=false"
            raise SchemaError(f'"{options}" is not an option of format "{name}"', hint=hint)
        given[found[1].lower()] = found[2]
        position = found.end()
    return given
