"""Sending records from an asyncio program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.clients.async_consumer import threads
from potok.log.clients.encoding import to_bytes
from potok.log.clients.producer import HeadersInput, Producer, encoded_record
from potok.log.errors import BrokerClosed
from potok.log.open import open_broker
from potok.records.log_record import LogRecord


class _Pending(NamedTuple):
    topic: str
    partition: int | None
    record: LogRecord
    done: asyncio.Future[None]


class AsyncProducer:
    """A `Producer` for asyncio: `send` returns when the record is durable.

    >>> async with AsyncProducer("file:./data") as producer:
    ...     await producer.send("orders", {"amount": 120.5}, key="user_001")

    Records of all tasks that send while an append runs go into the next one together, so gather sends for throughput:
    `await asyncio.gather(*(producer.send("orders", order) for order in orders))`. A send that is cancelled before its
    append begins writes nothing; one that is cancelled later does not prevent the write.

    The arguments are those of `Producer`.
    """

    def __init__(
        self,
        broker: Broker | str | Path,
        *,
        batch_records: int = 10_000,
        encode: Callable[[object], bytes | None] = to_bytes,
        create_topics: bool = True,
    ) -> None:
        self._broker, self._encode, self._create_topics = broker, encode, create_topics
        self._batch_records = batch_records
        self._producer: Producer | None = None
        self._pending: list[_Pending] = []
        self._writing: asyncio.Task[None] | None = None
        self._closed = False

    async def send(
        self,
        topic: str,
        value: object,
        key: object = None,
        timestamp: int | datetime | None = None,
        headers: HeadersInput | None = None,
        partition: int | None = None,
    ) -> None:
        """Append one record; it is durable when this returns. If it was not appended, raise the reason.

        Args:
            timestamp: Milliseconds since 1970, or a datetime; by default the time of the append.
            partition: Default: chosen by the key.
        """
        if self._closed:
            raise BrokerClosed(self._broker.url if isinstance(self._broker, Broker) else str(self._broker))
        record = encoded_record(self._encode, value, key, timestamp, headers)
        loop = asyncio.get_running_loop()
        pending = _Pending(topic, partition, record, loop.create_future())
        self._pending.append(pending)
        if self._writing is None:
            self._writing = loop.create_task(self._write_all())
        await pending.done

    async def flush(self) -> None:
        """Wait until all records sent so far are durable, or have failed."""
        while self._writing is not None:
            await asyncio.shield(self._writing)

    async def close(self) -> None:
        """Flush and close."""
        self._closed = True
        await self.flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                taken, self._pending = self._pending[: self._batch_records], self._pending[self._batch_records :]
                taken = [each for each in taken if not each.done.done()]
                errors = await loop.run_in_executor(threads(), self._append, taken)
                for each, error in zip(taken, errors, strict=True):
                    if each.done.done():
                        continue
                    if error is None:
                        each.done.set_result(None)
                    else:
                        each.done.set_exception(error)
        finally:
            self._writing = None
            for each in self._pending:
                each.done.cancel()

    def _append(self, taken: list[_Pending]) -> list[BaseException | None]:
        """Append the records of one topic together, in a thread; return the error of each that failed."""
        errors: list[BaseException | None] = [None] * len(taken)
        groups: dict[tuple[str, int | None], list[int]] = {}
        for number, each in enumerate(taken):
            try:
                self._opened()._admit(each.topic, each.partition, each.record)
            except (PotokError, OSError) as error:
                errors[number] = error
            else:
                groups.setdefault((each.topic, each.partition), []).append(number)
        for (topic, partition), numbers in groups.items():
            try:
                self._opened().broker.append(topic, [taken[number].record for number in numbers], partition)
            except (PotokError, OSError) as error:
                for number in numbers:
                    errors[number] = error
        return errors

    def _opened(self) -> Producer:
        if self._producer is None:
            broker = self._broker if isinstance(self._broker, Broker) else open_broker(self._broker)
            self._producer = Producer(broker, create_topics=self._create_topics)
        return self._producer
