"""Find the rows that violate the constraints of a Delta table, by writing them to a scratch table that has the same."""

from __future__ import annotations

import tempfile

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from potok.sinks.lakes.fit import refused_rows
from potok.sinks.sink_spec import Failures
from potok.sinks.table_columns import THERE

_PREFIX = "delta.constraints."
_REFUSED = "failed validation check"


def violations(table: DeltaTable, rows: pa.Table) -> Failures:
    """Return the rows that violate a constraint, by index. Rows that are deletions violate none."""
    configuration = table.metadata().configuration
    constraints = {name.removeprefix(_PREFIX): text for name, text in configuration.items() if name.startswith(_PREFIX)}
    if not constraints or not len(rows):
        return {}
    with tempfile.TemporaryDirectory(prefix="potok-") as directory:
        scratch = DeltaTable.create(directory, table.schema())
        scratch.alter.add_constraint(constraints)

        def attempt(part: pa.Table) -> None:
            if THERE in part.column_names:
                part = part.filter(part.column(THERE)).drop_columns([THERE])
            try:
                write_deltalake(scratch, part, mode="append")
            except DeltaError as error:
                if _REFUSED not in str(error):
                    raise
                raise pa.ArrowInvalid(f"it violates a constraint: {'; '.join(constraints.values())}") from error

        return refused_rows(rows, attempt)
