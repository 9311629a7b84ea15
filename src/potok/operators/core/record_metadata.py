"""Add metadata of records to their values, as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk
from potok.operators.core.dead_letters import InputPartition
from potok.operators.core.operator import Operator, Task
from potok.topology.nodes import About


class Annotate(Operator):
    """Add fields to the values."""

    def __init__(
        self,
        name: str,
        task: Task,
        fields: Sequence[tuple[str, About]],
        type_: pa.DataType,
        input_partitions: Sequence[InputPartition],
    ) -> None:
        super().__init__(name, task)
        self._fields, self._type = fields, type_
        self._partitions = np.array(
            [*(input_partition.partition for input_partition in input_partitions), -1], np.int32
        )

    def process(self, chunk: Chunk) -> None:
        value = chunk.value
        assert not isinstance(value, list)
        # Values under a null struct do not belong to the record.
        known = value.flatten() if value.null_count else [value.field(i) for i in range(value.type.num_fields)]
        # Fields that no step reads were not decoded.
        fields = [*value.type, *(self._type.field(name) for name, _ in self._fields)]
        added = [self._column(about, chunk, self._type.field(name).type) for name, about in self._fields]
        mask = value.is_null() if value.null_count else None
        self.emit(chunk.with_value(pa.StructArray.from_arrays([*known, *added], fields=fields, mask=mask)))

    def _column(self, about: About, chunk: Chunk, type_: pa.DataType) -> pa.Array:
        count = len(chunk)
        match about:
            case About.TIMESTAMP:
                return pa.array(chunk.timestamp)
            case About.PROCESSING_TIME:
                return pa.repeat(pa.scalar(self.task.processing_time_ms, type_), count)
            case About.HEADERS:
                return _headers(chunk.headers, count, type_)
            case About.PARTITION:
                return pa.array(
                    self._partitions[chunk.input_partition], mask=chunk.input_partition == NO_INPUT_PARTITION
                )
            case About.OFFSET:
                return pa.array(chunk.offset, mask=chunk.input_partition == NO_INPUT_PARTITION)


def _headers(headers: pa.Array | None, count: int, type_: pa.DataType) -> pa.Array:
    """Return a list for each record, empty where there are no headers."""
    if headers is None:
        return pa.array([[]] * count, type_)
    known = headers.cast(type_)
    return pc.coalesce(known, pa.scalar([], type_)) if known.null_count else known
