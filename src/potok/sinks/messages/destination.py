"""Where a message goes: a fixed name, or one that contains the key of its record."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from potok.records.formats.format import Column, Encoded
from potok.sinks.json_bodies import json_bodies
from potok.sinks.key_texts import keys_as_texts
from potok.sinks.sink_spec import Failures, Prepared, Rows

KEY = "{key}"


def destinations(template: str, keys: Column) -> Encoded:
    """Return the name for each record: `orders.{key}` contains its key as text, and a record without one is an error.

    >>> destinations("orders.{key}", ["ann", "bob"]).values.to_pylist()
    ['orders.ann', 'orders.bob']
    """
    if KEY not in template:
        return Encoded(pa.repeat(pa.scalar(template, pa.string()), len(keys)), {})
    texts = keys_as_texts(keys, required=True)
    first, *others = template.split(KEY)
    parts = [part for other in others for part in (texts.values, other)]
    return Encoded(pc.binary_join_element_wise(first, *parts, ""), texts.errors)


def longer_than(texts: pa.Array, most_bytes: int, what: str) -> Failures:
    """Return the records whose name the protocol cannot carry."""
    rows = pc.indices_nonzero(pc.greater(pc.binary_length(texts), most_bytes).fill_null(False)).to_pylist()
    return dict.fromkeys(rows, f"{what} is longer than {most_bytes} bytes")


def addressed(rows: Rows, template: str, *, with_key: bool) -> Prepared:
    """Prepare the names as keys, and the bodies as values."""
    names, bodies = destinations(template, rows.key), json_bodies(rows, with_key=with_key)
    return Prepared(names.values, bodies.values, {**bodies.errors, **names.errors})
