"""`potok consume`: print existing and new records of a topic."""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import note, print_json, show_bytes_of_record
from potok.log.clients.consumer import Consumer
from potok.log.errors import PartitionsMovedError
from potok.log.plain_records import record_as_object

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.log.consumer_groups import PartitionId
    from potok.log.start import Start
    from potok.records.log_record import LogRecord


app = command_app()

_POLL_SECONDS = 0.1


@app.command()
def consume(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic to read.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new records.")] = False,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="Start with the first record.")] = False,
    last: Annotated[int, typer.Option(min=0, help="Start with this many of the latest records.")] = 10,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Stop after this many records.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    group: Annotated[
        str | None, typer.Option(help="Join this consumer group and resume at its committed offsets.")
    ] = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Print the last records of a topic, like `tail`, or all of them.

    A line has partition:offset, time (UTC), key and value, separated by tabs. With --json it is an object with key,
    value, timestamp (milliseconds), partition, offset and headers; bytes that are not text become {"base64": "..."}.

    With --group, the command joins a consumer group, shares its partitions, and commits the records it has printed. A
    new group starts with the next record, or at the beginning with --from-beginning.
    """

    def show(record: LogRecord) -> None:
        if as_json:
            print_json(record_as_object(record))
        else:
            sys.stdout.write(as_line(record) + "\n")
        if follow:
            sys.stdout.flush()

    if group is not None and partition is not None:
        raise typer.BadParameter("a group assigns partitions itself", param_hint="--partition")
    with opened_log(context, broker) as log:
        if group is not None:
            consume_as_member(log, topic, group, show, most, from_beginning=from_beginning, follow=follow)
            return
        chosen = None if partition is None else {partition}
        records = read(log, topic, chosen, last=None if from_beginning else last, follow=follow)
        for record in islice(records, most):
            show(record)
    sys.stdout.flush()


def read(log: Log, topic: str, partitions: set[int] | None, *, last: int | None, follow: bool) -> Iterator[LogRecord]:
    """Yield records of all partitions in the order in which they were appended."""
    position = _of(log.earliest_offsets(topic), partitions)
    end = _of(log.end_offsets(topic), partitions)
    if last is None:
        yield from _between(log, topic, position, end)
    else:
        tails = [_tail(log, topic, number, position.get(number, 0), end[number], last) for number in sorted(end)]
        there = list(_merged(tails))
        yield from there[len(there) - last :] if last < len(there) else there
    while follow:
        position, end = end, _of(log.end_offsets(topic), partitions)
        if position == end:
            time.sleep(_POLL_SECONDS)
        yield from _between(log, topic, position, end)


def as_line(record: LogRecord) -> str:
    at = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    parts = ["null" if part is None else show_bytes_of_record(part) for part in (record.key, record.value)]
    return "\t".join((f"{record.partition}:{record.offset}", at, *parts))


def _between(log: Log, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> Iterator[LogRecord]:
    return _merged([_run(log, topic, number, start.get(number, 0), end[number]) for number in sorted(end)])


def _merged(runs: Sequence[Iterable[LogRecord]]) -> Iterator[LogRecord]:
    return heapq.merge(*runs, key=lambda record: record.ingested_ms)


def _tail(log: Log, topic: str, partition: int, start: int, end: int, last: int) -> list[LogRecord]:
    """Return at least the last records of a partition; compaction leaves gaps, so they may be far from its end."""
    found: list[LogRecord] = []
    reach = last
    while start < end and len(found) < last:
        begin = max(start, end - reach)
        found = [*_run(log, topic, partition, begin, end), *found]
        end, reach = begin, reach * 4
    return found


def _run(log: Log, topic: str, partition: int, start: int, end: int) -> Iterator[LogRecord]:
    from potok.records.log_record import LogRecord

    if start >= end:
        return
    for batch in log.read(topic, partition, start, end):
        for row in batch.to_pylist():
            headers = tuple((header["name"], header["value"]) for header in row["headers"] or ())
            yield LogRecord(
                row["key"], row["value"], row["timestamp"], headers, topic, partition, row["offset"], row["ingested"]
            )


def _of(offsets: dict[int, int], partitions: set[int] | None) -> dict[int, int]:
    return {number: offset for number, offset in offsets.items() if partitions is None or number in partitions}


_PORTION = 500
_WAIT_SECONDS = 0.5


def consume_as_member(
    log: Log,
    topic: str,
    group: str,
    show: Callable[[LogRecord], None],
    most: int | None,
    *,
    from_beginning: bool,
    follow: bool,
) -> None:
    """Print records, then commit them; a record is never committed before it is written to stdout."""
    shown: dict[PartitionId, int] = {}

    def begin(topic_partitions: list[PartitionId]) -> None:
        shown.update(
            {
                topic_partition: offset
                for topic_partition, offset in consumer.positions().items()
                if topic_partition in topic_partitions
            }
        )

    start: Start = "earliest" if from_beginning else "latest"
    consumer = Consumer(log, topic, group=group, start=start, until_end=not follow, on_assign=begin)
    with consumer:
        left = sys.maxsize if most is None else most
        try:
            while left > 0 and not consumer.at_end():
                records = consumer.poll(_WAIT_SECONDS, min(left, _PORTION))
                left -= len(records)
                for record in records:
                    show(record)
                    shown[record.topic, record.partition] = record.offset + 1
                if records:
                    _commit(consumer)
        except KeyboardInterrupt:
            # The interrupt may arrive after records were polled and before they were printed.
            for topic_partition, offset in consumer.positions().items():
                consumer.seek(*topic_partition, shown.get(topic_partition, offset))
            _commit(consumer)
            raise


def _commit(consumer: Consumer) -> None:
    sys.stdout.flush()
    try:
        consumer.commit()
    except PartitionsMovedError as error:
        note(f"{error.message}; some records will be printed again by a member of the group")
