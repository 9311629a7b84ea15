"""Remove the files that one commit added to a Delta table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import RemoveAction

from potok.clock import now_ms


class NotFound(Exception):
    """Files that the table has no more, so that their rows are somewhere else."""

    def __init__(self, mark: str, why: str) -> None:
        super().__init__(f"an attempt of this batch that died has left other rows, which cannot be removed: {why}")
        self.remedy = f"delete the rows that the commit {mark} added, and pass another name="


def remove_files(table: DeltaTable, options: dict[str, str], mark: str, properties: CommitProperties) -> None:
    """Remove what the commit with this mark added, in one commit with these properties.

    Args:
        table: The table as of its last version.
        options: Those of its storage.
        mark: The metadata `potok` of the commit.
        properties: Those of the commit that removes.
    """
    version = next((info["version"] for info in table.history() if info.get("potok") == mark), None)
    if version is None:
        raise NotFound(mark, "the log of the table does not have the commit any more")
    try:
        added = _files(table, options, version).keys() - _files(table, options, version - 1).keys()
    except DeltaError as error:
        raise NotFound(mark, str(error)) from error
    present = _files(table, options, table.version())
    if gone := added - present.keys():
        raise NotFound(mark, f"the table was compacted or deleted from since, {len(gone)} of its files are gone")
    actions = [_removed(present[path]) for path in sorted(added)]
    partitions = table.metadata().partition_columns
    table.create_write_transaction(
        list(actions), "append", table.schema(), partitions or None, commit_properties=properties
    )


def _files(table: DeltaTable, options: dict[str, str], version: int) -> dict[str, dict[str, Any]]:
    at = DeltaTable(table.table_uri, version=version, storage_options=options or None)
    found = pa.table(at.get_add_actions(flatten=False))
    return {row["path"]: row for row in found.to_pylist()}


def _removed(file: dict[str, Any]) -> RemoveAction:
    partition = {name: None if value is None else str(value) for name, value in (file.get("partition") or {}).items()}
    return RemoveAction(file["path"], True, now_ms(), size=file["size_bytes"], partition_values=partition)
