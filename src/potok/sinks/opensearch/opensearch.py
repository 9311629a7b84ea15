"""Maintain an index in OpenSearch or Elasticsearch: a value replaces the document of its key, and a null deletes it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import TopologyError
from potok.sinks.guarantee import Guarantee
from potok.sinks.http.http import check_header
from potok.sinks.json_bodies import json_documents
from potok.sinks.key_texts import keys_as_texts
from potok.sinks.sink_spec import Failures, Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.urls import address_of, clear_url

_INDEX = re.compile(r"(?![-_+.])[^A-Z\\/*?\"<>| ,#:]{1,255}")

LONGEST_ID = 512
"""In bytes; the limit of the server."""


@dataclass(frozen=True, slots=True)
class OpenSearchTarget(SinkSpec):
    """An index. URL and headers may contain secrets and are not shown."""

    verb: ClassVar[str] = "to_opensearch"

    url: str = field(repr=False)
    index: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    bulk_bytes: int
    timeout_ms: int
    give_up_after_ms: int | None

    @property
    def label(self) -> str:
        return f'index "{self.index}" at {address_of(self.url)}'

    def check(self, types: Types, guarantee: Guarantee) -> None:
        if self.url.partition(":")[0] not in ("http", "https") or not clear_url(self.url).hosts:
            raise TopologyError("this is not an HTTP address", hint='write "http://localhost:9200"')
        if not _INDEX.fullmatch(self.index):
            hint = 'write lower-case letters, digits, "-" and "_", starting with a letter or a digit'
            raise TopologyError(f'"{self.index}" cannot be the name of an index', hint=hint)
        if types.value is not None and not pa.types.is_struct(types.value):
            raise TopologyError(
                "a document needs fields", hint='map the values first: map_values(lambda v: {"value": v})'
            )
        if self.bulk_bytes < 1:
            raise TopologyError(f"bulk_bytes={self.bulk_bytes} is too small", hint="write bulk_bytes=5_000_000")
        for name, value in self.headers:
            check_header(name, value)

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Prepare ids as keys and documents as values; a null value remains null."""
        keys, values = keys_as_texts(rows.key, required=True), json_documents(rows.value)
        failures = {**_unfit(keys.values, values.values), **values.errors, **keys.errors}
        return Prepared(keys.values, values.values, failures)

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.opensearch.writer import OpenSearchWriter  # imports the client

        return OpenSearchWriter(self, opening)


def _unfit(ids: pa.Array, documents: pa.Array) -> Failures:
    plain = pc.invert(pc.starts_with(documents, "{")).fill_null(False)
    long = pc.greater(pc.binary_length(ids), LONGEST_ID).fill_null(False)
    empty = pc.equal(pc.binary_length(ids), 0).fill_null(False)
    return {
        **dict.fromkeys(_rows(plain), "a document needs a value with fields"),
        **dict.fromkeys(_rows(long), f"an id has at most {LONGEST_ID} bytes"),
        **dict.fromkeys(_rows(empty), "an id cannot be empty"),
    }


def _rows(flags: pa.Array) -> list[int]:
    found: list[int] = pc.indices_nonzero(flags).to_pylist()
    return found
