"""Read a topic as a DataFrame, by offsets or by time: one Spark partition for each range of offsets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.log.errors import TopicNotFound
from potok.log.open import NoLogThere, log_exists, open_broker
from potok.settings import Settings
from potok.spark.data_source.filters import instants_between, numbers_between, pushes_filters
from potok.spark.data_source.options import EARLIEST, Offsets, TopicOptions
from potok.spark.data_source.spark_types import fitted
from potok.spark.data_source.topic_columns import TopicColumns

Ranges = dict[int, tuple[int, int]]
"""The first offset (inclusive) and the last one (exclusive), by partition."""


class RecordsGoneError(QueryError):
    """A range of offsets whose records were deleted, or do not exist."""

    def __init__(self, topic: str, partition: int, wanted: int, first: int, last: int) -> None:
        super().__init__(
            f"partition {partition} of topic {topic} has the offsets {first} to {last}, and {wanted} is not among them",
            hint="name other offsets; a stream whose records were deleted needs a new checkpoint",
        )


class OffsetRange(InputPartition):
    """Some records of one topic partition."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        super().__init__((partition, start, end))
        self.partition, self.start, self.end = partition, start, end


def open_topic(options: TopicOptions) -> Broker:
    """Open the log that holds the topic."""
    if not log_exists(options.broker):
        raise NoLogThere(options.broker)
    broker = open_broker(options.broker, Settings.load(broker=options.broker))
    if not broker.has_topic(options.topic):
        raise TopicNotFound(options.topic)
    return broker


def resolved(broker: Broker, topic: str, given: Offsets | None, default: Mapping[int, int]) -> dict[int, int]:
    """Return offsets for all partitions."""
    if given is None:
        return dict(default)
    if isinstance(given, dict):
        first, last = broker.earliest_offsets(topic), broker.end_offsets(topic)
        for partition, offset in given.items():
            if not first.get(partition, 0) <= offset <= last.get(partition, -1):
                bounds = first.get(partition, 0), last.get(partition, 0)
                raise RecordsGoneError(topic, partition, offset, *bounds)
        return {**default, **given}
    return broker.earliest_offsets(topic) if given == EARLIEST else broker.end_offsets(topic)


def from_time(broker: Broker, topic: str, at_ms: int) -> dict[int, int]:
    """Return for each partition an offset before which no record has this timestamp or a later one."""
    first, earliest = broker.start_offsets(topic), broker.earliest_offsets(topic)
    found = broker.offsets_at([(topic, partition) for partition in first], at_ms)
    # The archive is not searched.
    return {p: found[topic, p] if earliest[p] == first[p] else earliest[p] for p in first}


def split(ranges: Ranges, most: int) -> list[OffsetRange]:
    """Return ranges of at most this many offsets."""
    return [
        OffsetRange(partition, first, min(first + most, end))
        for partition, (start, end) in sorted(ranges.items())
        for first in range(start, end, most)
    ]


class TopicRecords:
    """Reads ranges of a topic: in tasks, for both kinds of readers."""

    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        self.options, self._schema = options, schema
        self.broker = open_topic(options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return fitted(self._batches(partition), self._schema)

    def _batches(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, OffsetRange):
            return  # Spark's own partition for an empty range
        columns = TopicColumns(self.options)
        ranged = partition.partition, partition.start, partition.end
        for batch in self.broker.read(self.options.topic, *ranged):
            converted = columns.convert(batch, partition.partition)
            if converted.num_rows:
                yield converted


class TopicReader(DataSourceReader):
    """Plans and reads a range of a topic."""

    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        self._records = TopicRecords(options, schema)
        self._filters: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        return list(split(self._ranges(), self._records.options.records_per_partition))

    def _ranges(self) -> Ranges:
        options, broker = self._records.options, self._records.broker
        topic = options.topic
        starts = resolved(broker, topic, options.starting_offsets, broker.earliest_offsets(topic))
        ends = resolved(broker, topic, options.ending_offsets, broker.end_offsets(topic))
        since = max(instants_between(self._filters, "timestamp")[0], _or_never(options.starting_timestamp))
        if since > -math.inf:
            by_time = from_time(broker, topic, int(since))
            starts = {p: max(start, by_time.get(p, start)) for p, start in starts.items()}
        low, high = numbers_between(self._filters, "offset")
        first, last = numbers_between(self._filters, "partition")
        return {
            p: (int(max(start, low)), int(min(ends[p], high + 1)))
            for p, start in starts.items()
            if first <= p <= last and max(start, low) < min(ends[p], high + 1)
        }

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._records.read(partition)


def _or_never(at_ms: int | None) -> float:
    return -math.inf if at_ms is None else at_ms


class FilteredTopicReader(TopicReader):
    """Reads only the range that satisfies filters on partition, offset and timestamp."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._filters = filters
        return filters


def topic_reader(options: TopicOptions, schema: StructType) -> TopicReader:
    return (FilteredTopicReader if pushes_filters() else TopicReader)(options, schema)
