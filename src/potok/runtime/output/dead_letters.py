"""Dead letters on their way to their topic. None may be refused there: one that does not fit is truncated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from potok.log.broker import LOG_SCHEMA, Broker, Staged
from potok.operators.core.dead_letters import CUT, DeadLetters, Note, split_headers

Row = dict[str, Any]


def stage_dead_letters(broker: Broker, directory: Path | None, topic: str, dead_letters: DeadLetters) -> list[Staged]:
    return [
        broker.stage(directory, topic, 0, fitted(broker, topic, batch, dead_letters.at_ms))
        for batch in dead_letters.batches(LOG_SCHEMA)
    ]


def fitted(broker: Broker, topic: str, batch: pa.RecordBatch, at_ms: int) -> pa.RecordBatch:
    """Change the dead letters that the log would refuse: move their timestamp to a header, or truncate their bytes."""
    misfits = broker.unfit(topic, batch)
    if not misfits:
        return batch
    rows = batch.to_pylist()
    for number in misfits:
        rows[number] = _fitted(broker, topic, rows[number], at_ms)
    return pa.RecordBatch.from_pylist(rows, LOG_SCHEMA)


def _fitted(broker: Broker, topic: str, dead_letter: Row, at_ms: int) -> Row:
    for candidate in _candidates(dead_letter, at_ms):
        if not broker.unfit(topic, pa.RecordBatch.from_pylist([candidate], LOG_SCHEMA)):
            return candidate
    return dead_letter


def _candidates(dead_letter: Row, at_ms: int) -> Iterator[Row]:
    """Yield the dead letter with less and less of the value, then without key and headers; then the same with its
    timestamp in a header.
    """
    noted = {
        **dead_letter,
        "timestamp": at_ms,
        "headers": _with_note(dead_letter, Note.TIME, str(dead_letter["timestamp"])),
    }
    for timed in (dead_letter, noted):
        yield timed
        headers = _with_note(timed, Note.BYTES, CUT)
        value = timed["value"]
        while value:
            value = value[: len(value) // 2]
            yield {**timed, "value": value, "headers": headers}
        yield {**timed, "key": None, "value": None, "headers": headers}
        _, notes = split_headers(headers)
        yield {**timed, "key": None, "value": None, "headers": notes}


def _with_note(dead_letter: Row, note: str, text: str) -> list[dict[str, Any]]:
    return [*dead_letter["headers"], {"name": note, "value": text.encode()}]
