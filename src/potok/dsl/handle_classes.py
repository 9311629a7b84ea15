"""Name the handle classes that methods of other handles return.

A stream has methods that return tables, and a table has methods that return streams, so their modules cannot all import
each other. Instead, the builder passes the classes to its graph, and a handle finds there the classes that it cannot
import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from potok.dsl.grouped_stream import GroupedStream
    from potok.dsl.grouped_table import GroupedTable
    from potok.dsl.matched_stream import MatchedStream
    from potok.dsl.processed_stream import ProcessedStream
    from potok.dsl.stream import Stream


@dataclass(frozen=True, slots=True)
class HandleClasses:
    """The handle classes that are needed below the modules that define them."""

    stream: type[Stream[Any, Any]]
    grouped_stream: type[GroupedStream[Any, Any]]
    grouped_table: type[GroupedTable[Any, Any]]
    matched_stream: type[MatchedStream[Any, Any]]
    processed_stream: type[ProcessedStream[Any, Any]]
