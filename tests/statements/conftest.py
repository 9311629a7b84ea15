from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from statements.playing import Play


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    found = Play(tmp_path)
    yield found
    found.close()
