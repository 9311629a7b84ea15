"""Send arrays of bytes to PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from potok.backends.postgres.arrays import Blobs
from potok.backends.postgres.connections import connections_to
from potok.backends.state_url import Where


@pytest.mark.parametrize("items", [[], [b""], [b"\x00", b"long" * 1000, b""]])
def test_arrays_of_bytes_are_stored_unchanged(postgres_url: str, items: list[bytes]) -> None:
    statement = "SELECT array_length(a, 1), a FROM (SELECT %b AS a) AS x"
    with connections_to(Where.of(postgres_url)).borrowed() as connection:
        found: Any = connection.execute(statement, [Blobs(items)]).fetchone()
    assert found == (len(items) or None, items)
