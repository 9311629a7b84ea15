"""What the formats of a schema registry share: values are grouped by the schema that they name, and each group is
decoded at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.errors import SchemaError
from potok.records.conversion.convert import Reading, Rules
from potok.records.conversion.fit import without_rows
from potok.records.conversion.lenient import LENIENT
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.rows import column_of
from potok.records.schema_registry.client import Registered, RegistryClient, client_of
from potok.records.schema_registry.connection import connection_at, current_connection
from potok.records.schema_registry.errors import NoRegistry, UnknownSchema
from potok.records.schema_registry.wire import SchemaId, frames_of
from potok.records.schemas.schema import Schema

_NAMES = ("exact", "fold")


@dataclass(frozen=True, slots=True)
class RegisteredFormat:
    """A format whose values name their schemas by id.

    Values are read with the schema that they were written with. If an `id` is given, the schema that it names is that
    of the reader, by the rules of the format, and that of the writer; otherwise values are written with the schema of
    their columns, which is registered under the `subject`.
    """

    name: str
    subject: str = ""
    id: str = ""
    full_name: str = ""
    registry: str = ""
    """The URL of the registry, or `env:NAME` of it; by default that of the settings."""
    names: str = "exact"
    """`fold`: names match in any case, as in SQL."""

    def __post_init__(self) -> None:
        if self.id and not (self.id.isascii() and self.id.isdigit() and int(self.id) < 1 << 32):
            raise SchemaError(f'"{self.id}" is not the id of a schema', hint="write the number that the registry shows")
        if self.names not in _NAMES:
            raise SchemaError(f'format "{self.name}" cannot have names={self.names}', hint="write exact or fold")

    @property
    def client(self) -> RegistryClient:
        connection = connection_at(self.registry) if self.registry else current_connection()
        if connection is None:
            raise NoRegistry(self.name.partition(";")[0])
        return client_of(connection)

    @property
    def folds(self) -> bool:
        return self.names == "fold"

    @property
    def rules(self) -> Rules:
        """How decoded objects are converted to columns."""
        return FOLDING if self.folds else Reading.PYTHON

    def pinned(self) -> Registered | None:
        """Return the schema that the option `id` names; None without one."""
        if not self.id:
            return None
        try:
            return self.client.schema(int(self.id))
        except UnknownSchema as error:
            raise SchemaError(str(error), hint="GET /subjects of the registry lists what there is") from error

    def writer_schema(self) -> Registered | None:
        """Return the schema that values are written with, if it is not made from their columns."""
        found = self.pinned()
        client = self.client
        if found is not None:
            if self.subject and client.connection.registers:
                client.register(self.subject, found.kind, found.text, found.references)
            return found
        return None if client.connection.registers else self.client.current(self._subject)

    @property
    def _subject(self) -> str:
        if not self.subject:
            plain = self.name.partition(";")[0]
            hint = f'name it: "{plain};subject=orders-value"'
            raise SchemaError(f'format "{plain}" cannot be written without a subject', hint=hint)
        return self.subject

    def registered(self, kind: str, text: str) -> Registered:
        """Return the schema of columns under the subject, registered if it is new."""
        return self.client.register(self._subject, kind, text)

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        frames = frames_of(binary_column(values))
        errors = dict(frames.errors)
        groups: list[tuple[npt.NDArray[np.int64], Decoded]] = []
        for schema_id, rows in frames.rows_of.items():
            bodies = frames.bodies if len(rows) == len(values) else frames.bodies.take(pa.array(rows))
            try:
                decoded = self.decode_group(self._of_id(schema_id), bodies, schema, columns)
            except UnknownSchema as error:
                errors |= dict.fromkeys(rows.tolist(), str(error))
                continue
            errors |= {int(rows[row]): reason for row, reason in decoded.errors.items()}
            groups.append((rows, decoded))
        return Decoded(_joined(groups, len(values), None if schema is None else schema.select(columns)), errors)

    def _of_id(self, schema_id: SchemaId) -> Registered:
        client = self.client
        return client.schema(schema_id) if isinstance(schema_id, int) else client.schema_by_guid(schema_id)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if isinstance(column, list):
            if schema is None:
                return self.encode_dynamic(column)
            fitted = column_of(column, schema)
            encoded = self.encode(fitted.column, schema)
            return Encoded(encoded.values, {**encoded.errors, **fitted.errors})
        return self.encode_column(column, self.needed(schema))

    def needed(self, schema: Schema | None) -> Schema:
        if schema is None:
            hint = "declare the columns, or write with a schema of the registry: id=, or auto.register.schemas = false"
            raise SchemaError(f"{self.name.partition(';')[0]} cannot be written without declared columns", hint=hint)
        return schema

    def infer(self, written: Registered, *, sql: bool) -> Schema | None:
        """Return the type of a schema as a column; None if no column holds it. Raises `UnknownSchema`."""
        raise NotImplementedError

    def announce(self, schema: Schema) -> None:
        """Register the schema that values of this type are written with, so that a refusal is known early."""
        raise NotImplementedError

    def decode_group(
        self, written: Registered, bodies: pa.Array, schema: Schema | None, columns: Sequence[str] | None
    ) -> Decoded:
        """Decode values that were written with one schema. Raises `UnknownSchema` if it cannot be used."""
        raise NotImplementedError

    def encode_column(self, column: pa.Array, schema: Schema) -> Encoded:
        raise NotImplementedError

    def encode_dynamic(self, column: list[Any]) -> Encoded:
        """Encode objects of no declared type, with a schema of the registry."""
        raise NotImplementedError


class FoldingRules:
    """The rules for Python objects, with names in any case."""

    plain = staticmethod(Reading.PYTHON.plain)
    converter = staticmethod(Reading.PYTHON.converter)
    mapping = staticmethod(Reading.PYTHON.mapping)
    sequence = staticmethod(Reading.PYTHON.sequence)
    map_key = staticmethod(Reading.PYTHON.map_key)
    named = staticmethod(LENIENT.named)


FOLDING: Rules = FoldingRules()


def _joined(groups: list[tuple[npt.NDArray[np.int64], Decoded]], count: int, schema: Schema | None) -> Column:
    """Return the groups as one column, null in all other rows."""
    if schema is None:
        objects: list[Any] = [None] * count
        for rows, decoded in groups:
            for row, found in zip(rows.tolist(), decoded.column, strict=True):
                objects[row] = found
        return objects
    if len(groups) == 1 and len(groups[0][0]) == count:
        return groups[0][1].column
    if not groups:
        return pa.nulls(count, schema.arrow)
    index = np.full(count, -1, np.int64)
    begin = 0
    for rows, _ in groups:
        index[rows] = np.arange(begin, begin + len(rows))
        begin += len(rows)
    return pa.concat_arrays([decoded.column for _, decoded in groups]).take(pa.array(index, mask=index < 0))


def settled(column: pa.Array, fitted_errors: dict[int, str], errors: dict[int, str]) -> Decoded:
    """Return a column whose rows with errors are null."""
    return Decoded(without_rows(column, errors) if errors else column, {**fitted_errors, **errors})
