"""`potok consume --group`: print records as a member of a consumer group."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from potok.cli.output import note
from potok.log.clients.consumer import Consumer
from potok.log.errors import PartitionsMovedError

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.log.consumer_groups import PartitionId
    from potok.log.start import Start
    from potok.records.log_record import LogRecord

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
