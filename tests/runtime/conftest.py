"""A shared query that a test drives by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.queries.by_hand import ByHand


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[ByHand]:
    found = ByHand(tmp_path)
    yield found
    found.stop()
    found.broker.close()
