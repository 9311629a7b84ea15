"""Read single records by position, in few reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.log.broker import Broker
from potok.log.errors import OffsetOutOfRange

NEAR = 500
"""Gaps of up to this many records are read and dropped: a separate read takes as long, on Kafka and in the embedded
log, which reads whole frames."""

Ints = npt.NDArray[np.int64]


def read_positions(broker: Broker, topic: str, partition: int, offsets: Iterable[int]) -> Iterator[pa.RecordBatch]:
    """Yield the records of some offsets, in order, as batches of READ_SCHEMA; deleted ones are skipped."""
    wanted = np.unique(np.fromiter(offsets, np.int64))
    if len(wanted):
        for run in np.split(wanted, np.flatnonzero(np.diff(wanted) > NEAR) + 1):
            yield from _read_run(broker, topic, partition, run)


def _read_run(broker: Broker, topic: str, partition: int, wanted: Ints) -> Iterator[pa.RecordBatch]:
    left = wanted
    try:
        for batch in broker.read(topic, partition, int(wanted[0]), int(wanted[-1]) + 1):
            offsets = batch.column("offset").to_numpy()
            found = np.flatnonzero(np.isin(offsets, left, assume_unique=True))
            left = left[left > offsets[-1]]
            if len(found):
                yield batch.take(pa.array(found))
    except OffsetOutOfRange:
        held = left[_held(broker, topic, partition, left)]
        if 0 < len(held) < len(left):
            yield from _read_run(broker, topic, partition, held)


def _held(broker: Broker, topic: str, partition: int, offsets: Ints) -> npt.NDArray[np.bool_]:
    first, end = broker.earliest_offsets(topic)[partition], broker.end_offsets(topic)[partition]
    return np.asarray((offsets >= first) & (offsets < end), np.bool_)
