"""The three formats in which ksqlDB sends the rows of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from potok.errors import PotokError
from potok.server.ksql.json_rows import dump, schema_text, type_text
from potok.server.problems import ksql_error
from potok.statements.results import ResultColumn

DELIMITED = "application/vnd.ksqlapi.delimited.v1"
JSON = "application/json"
KSQL_V1 = "application/vnd.ksql.v1+json"


class RowFormat(ABC):
    """Encodes a response in pieces; a client can parse each row as soon as it has received its piece."""

    media_type: str

    @abstractmethod
    def header(self, query_id: str | None, columns: Sequence[ResultColumn]) -> bytes: ...

    @abstractmethod
    def row(self, array: bytes) -> bytes: ...

    @abstractmethod
    def failed(self, error: PotokError) -> bytes:
        """Return the last piece of an interrupted response."""

    @abstractmethod
    def ended(self, message: str) -> bytes:
        """Return the last piece."""

    def whole(self, query_id: str | None, columns: Sequence[ResultColumn], arrays: Iterable[bytes]) -> bytes:
        """Encode a complete response."""
        pieces = [self.header(query_id, columns), *map(self.row, arrays), self.ended("")]
        return b"".join(pieces)

    idle = b""
    """Return a keep-alive piece, sent while there are no rows."""


class Delimited(RowFormat):
    """One JSON document per line."""

    media_type = DELIMITED

    def header(self, query_id: str | None, columns: Sequence[ResultColumn]) -> bytes:
        return dump(_columns(query_id, columns)) + b"\n"

    def row(self, array: bytes) -> bytes:
        return array + b"\n"

    def failed(self, error: PotokError) -> bytes:
        return dump(ksql_error(error)) + b"\n"

    def ended(self, message: str) -> bytes:
        return b""


class JsonArray(RowFormat):
    """One JSON array."""

    media_type = JSON
    idle = b"\n"

    def header(self, query_id: str | None, columns: Sequence[ResultColumn]) -> bytes:
        return b"[" + dump(_columns(query_id, columns)) + b"\n"

    def row(self, array: bytes) -> bytes:
        return b"," + array + b"\n"

    def failed(self, error: PotokError) -> bytes:
        return b"," + dump(ksql_error(error)) + b"\n]\n"

    def ended(self, message: str) -> bytes:
        return b"]\n"


class KsqlRows(RowFormat):
    """The format of /query: an array of tagged objects, one per line."""

    media_type = KSQL_V1
    idle = b"\n"

    def header(self, query_id: str | None, columns: Sequence[ResultColumn]) -> bytes:
        return b"[" + self._header(query_id, columns) + b",\n"

    def _header(self, query_id: str | None, columns: Sequence[ResultColumn]) -> bytes:
        return dump({"header": {"queryId": query_id, "schema": schema_text(columns)}})

    def row(self, array: bytes) -> bytes:
        return b'{"row":{"columns":' + array + b"}},\n"

    def failed(self, error: PotokError) -> bytes:
        return dump({"errorMessage": ksql_error(error)}) + b"]\n"

    def ended(self, message: str) -> bytes:
        return dump({"finalMessage": message}) + b"]\n"

    def whole(self, query_id: str | None, columns: Sequence[ResultColumn], arrays: Iterable[bytes]) -> bytes:
        rows = (b'{"row":{"columns":' + array + b"}}" for array in arrays)
        return b"[" + b",\n".join([self._header(query_id, columns), *rows]) + b"]\n"


def _columns(query_id: str | None, columns: Sequence[ResultColumn]) -> dict[str, Any]:
    return {
        "queryId": query_id,
        "columnNames": [column.name for column in columns],
        "columnTypes": [type_text(column.type) for column in columns],
        # ksqlDB does not have this; its clients ignore names that they do not know.
        "keyColumns": [column.name for column in columns if column.is_key],
    }


def chosen(accept: str) -> RowFormat:
    """Return the format that a client of /query-stream requests."""
    for part in accept.split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind == JSON:
            return JsonArray()
        if kind == KSQL_V1:
            return KsqlRows()
        if kind == DELIMITED:
            break
    return Delimited()
