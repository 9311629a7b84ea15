"""The default of a field, checked when the schema is created."""

from __future__ import annotations

from typing import Any

from potok.errors import SchemaError
from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.rows import rows_of
from potok.records.schemas.schema import Schema


def checked_default(name: str, schema: Schema, default: Any, reading: Reading) -> Any:
    """Return the default as the object that a lambda sees, or raise a `SchemaError` if it is not of the
    field's type.
    """
    fitted = fit([default], schema, reading)
    if fitted.errors:
        raise SchemaError(
            f'the default of field "{name}" is not of its type: {fitted.errors[0].removeprefix("the value: ")}',
            hint="use a default of the declared type, or change the type",
        )
    return rows_of(fitted.column)[0]
