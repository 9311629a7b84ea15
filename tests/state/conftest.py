"""A shard in each of the stores, which all behave alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.backends.state_url import Where
from state.shard import Shard

STORES = ("lmdb", "redis", "postgres", "cassandra", "directory", "s3")


@pytest.fixture(params=STORES)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """A state location in each of the stores."""
    if request.param == "lmdb":
        return Where.of(tmp_path)
    if request.param in ("directory", "s3"):
        request.getfixturevalue("cache")
    return Where.of(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def shard(where: Where) -> Iterator[Shard]:
    made = Shard(where)
    yield made
    made.close()
