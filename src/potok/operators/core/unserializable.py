"""Values that are not data: an open file, a function, an object of a user's class. No step can store them, so they
are found first, and their record is set aside instead of stopping the query.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from potok.errors import StateError
from potok.operators.core.call import Errors, describe_error, plain_all
from potok.operators.core.chunk import Chunk, Column
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, all_but
from potok.operators.exchange.shards import key_column
from potok.operators.tables.changes import blank
from potok.state.codec import check_data, dump_state

NOT_DATA = (StateError, TypeError, ValueError, RecursionError)
"""The errors that `dump_state` raises for a value that is not data."""


def not_data(values: list[Any]) -> Errors:
    """Return the values that cannot be stored, each with the reason. All are tried at once, and one by one only if
    that fails.
    """
    errors: Errors = {}
    try:
        check_data(_deeper(values))
    except NOT_DATA:
        for row, value in enumerate(values):
            try:
                dump_state(_deeper(value))
            except NOT_DATA as error:
                errors[row] = describe_error(error)
    return errors


def _deeper(value: Any) -> Any:
    """Nest a value as deeply as cells do, because nesting has a limit."""
    return [[[[[value]]]]]


def only_data(column: Column) -> tuple[Column, Errors]:
    """Replace values that are not data by null; return the column and the reasons."""
    errors = not_data(plain_all(column)) if isinstance(column, list) else {}
    return (blank(column, all_but(errors, len(column))) if errors else column), errors


def data_records(operator: Operator, chunk: Chunk, key_type: pa.DataType | None) -> Chunk:
    """Return records under canonical keys, without those whose values are not data, which are set aside."""
    _, errors = only_data(chunk.value)
    if not errors:
        return chunk
    assert isinstance(chunk.key, pa.Array)
    decoded = chunk.with_key(key_column(chunk.key, key_type))
    operator.task.dead_letters.add(decoded, errors, operator.step, Reason.ERROR)
    return chunk.where(all_but(errors, len(chunk)))


def data_changes(operator: Operator, chunk: Chunk) -> Chunk:
    """Return changes of a table. A row whose value is not data is deleted and set aside, like one whose function
    raises: if it were left unchanged, the result would depend on which changes are in one batch.
    """
    value, errors = only_data(chunk.value)
    if not errors:
        return chunk
    operator.task.dead_letters.add(chunk, errors, operator.step, Reason.ERROR)
    return chunk.with_value(value)
