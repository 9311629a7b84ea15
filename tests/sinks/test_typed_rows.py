"""Rows of typed columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from potok.sinks.typed_rows import digest_of


def test_the_digest_of_rows_does_not_depend_on_the_version_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"a": [1, None], "b": ["x", "y"]})
    before = digest_of(rows)
    write = pq.write_table

    def write_as_another_version(table: pa.Table, out: Any, **options: Any) -> None:
        write(table, out, **options)
        data = out.getvalue()
        assert b"parquet-cpp-arrow version" in data
        out.seek(0)
        out.write(data.replace(b"parquet-cpp-arrow version", b"parquet-cpp-arrow VERSION"))

    monkeypatch.setattr(pq, "write_table", write_as_another_version)
    assert digest_of(rows) == before


def test_the_digest_of_other_rows_is_another() -> None:
    tables = [
        pa.table({"a": [1, 2]}),
        pa.table({"a": [1, None]}),
        pa.table({"a": [1, 2, 2]}),
        pa.table({"b": [1, 2]}),
        pa.table({"a": pa.array([1, 2], pa.timestamp("us"))}),
        pa.table({"a": pa.array([], pa.int64())}),
    ]
    assert len({digest_of(table) for table in tables}) == len(tables)
