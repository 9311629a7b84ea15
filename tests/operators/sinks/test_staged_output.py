"""Records for a sink outside the log, on their way from a task to the driver."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from operators.core.chunks import chunk_of
from potok.errors import QueryError
from potok.operators.sinks.staged_output import INLINE_BYTES, stage_chunk


def test_a_file_that_is_not_as_the_task_wrote_it_is_not_read(tmp_path: Path) -> None:
    chunk = chunk_of(["k"], ["x" * INLINE_BYTES])
    outgoing = stage_chunk(tmp_path / "staging", "step", 0, chunk)
    assert outgoing.chunk().value == chunk.value
    assert stat.S_IMODE((tmp_path / "staging").stat().st_mode) == 0o700
    Path(outgoing.path).write_bytes(Path(outgoing.path).read_bytes()[:-1] + b"x")
    with pytest.raises(QueryError, match="differs from what the task wrote"):
        outgoing.chunk()
