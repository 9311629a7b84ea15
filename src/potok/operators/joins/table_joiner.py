"""Combine two rows by the user's joiner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from potok.expressions.function import Function
from potok.operators.core.call import Errors, describe_error, plain
from potok.operators.core.chunk import Column
from potok.operators.tables.table_groups import fitted
from potok.records.rows import converter_of, rows_of
from potok.records.schemas.schema import Schema
from potok.topology.nodes.joins import JoinKind

_SHOWN_CHARS = 300


class TableJoiner:
    """Call the joiner for the pairs of rows that the kind of join requires; without a joiner, the result is a dict of
    both. `given` are the types of the key and of both rows."""

    def __init__(
        self,
        function: Function | None,
        how: JoinKind,
        schema: Schema | None,
        type_: pa.DataType | None,
        given: Sequence[pa.DataType | None],
    ) -> None:
        self._function, self.how, self._schema, self._type = function, how, schema, type_
        self._key_of, self._left_of, self._right_of = map(converter_of, given)

    def rows(self, keys: Sequence[Any], lefts: Sequence[Any], rights: Sequence[Any]) -> tuple[list[Any], Errors]:
        """Return the joined rows, None where there is none; and errors, by number."""
        joined: list[Any] = [None] * len(keys)
        errors: Errors = {}
        for row, (key, left, right) in enumerate(zip(keys, lefts, rights, strict=True)):
            if self._wanted(left, right):
                try:
                    joined[row] = self._join(key, left, right)
                except Exception as error:  # noqa: BLE001 - the user's joiner may raise anything
                    errors[row] = describe_error(error)
        if self._schema is not None:
            column, misfits = fitted(joined, self._schema)
            joined = [None if row in misfits or row in errors else plain(v) for row, v in enumerate(rows_of(column))]
            errors = {**misfits, **errors}
        return joined, errors

    def _wanted(self, left: Any, right: Any) -> bool:
        if self.how is JoinKind.INNER:
            return left is not None and right is not None
        return left is not None or (self.how is JoinKind.OUTER and right is not None)

    def _join(self, key: Any, left: Any, right: Any) -> Any:
        if self._function is None:
            return {"left": left, "right": right}
        rows = self._left_of(left), self._right_of(right)
        given = rows if self._function.arity == 2 else (self._key_of(key), *rows)
        return plain(self._function.callable(*given))

    def column(self, rows: list[Any]) -> Column:
        return rows if self._type is None else pa.array(rows, self._type)


def with_rows(errors: Errors, pairs: list[dict[str, Any]]) -> Errors:
    """Add the two rows to each error: the record that caused it shows only one of them."""
    return {
        row: f"{text}; left is {_short(pairs[row]['left'])}, right {_short(pairs[row]['right'])}"
        for row, text in errors.items()
    }


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
