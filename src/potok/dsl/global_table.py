"""A table that streams look things up in by any key."""

from __future__ import annotations

from potok.dsl.table import Table


class GlobalTable(Table):
    """A table to be joined by a key that is computed from the record.

    It lies on the shards of its keys like any other table, not as a copy on each: the engine brings the records to it,
    and gives them their own key back afterwards.
    """
