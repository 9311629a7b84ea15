"""Publish the output of a query in Kafka transactions: all records of a batch and its fence, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import KafkaError, KafkaException, Producer

from potok.clock import now_ms
from potok.log.broker import PublishedBatch
from potok.log.failpoint import failpoint
from potok.log.kafka.admin.offsets import Positions
from potok.log.kafka.append import Delivery, send
from potok.log.kafka.clients import TIMEOUT_S, Clients
from potok.log.kafka.errors import PublishedInPart, QueryFenced
from potok.log.kafka.fences import PARTITION, SLOTS, TOPIC, Fence, Fences, fence_key, fence_of, is_published, slot_of
from potok.log.kafka.producer_records import Outgoing, outgoing
from potok.log.kafka.staged_rows import StagedRows
from potok.records.position import Position
from potok.retry_policy import Retry

TIMEOUT_MS = 60_000
"""Kafka aborts a transaction that was not ended within this time."""

_AT_ONCE = 8
_ATTEMPTS = 5
_ENOUGH_MS = 2 * TIMEOUT_MS
"""No further attempt is made after this time."""

_SLOW = (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT)
"""Records were not delivered in time. The client does not send them again, but another transaction does."""

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)

Check = Callable[[], None]
"""Raises if another process has taken over the query."""


class Transactor:
    """The only producer of a query, or of one of its slots. A second one, in any process, fences it."""

    def __init__(
        self,
        clients: Clients,
        positions: Positions,
        fences: Fences,
        name: str,
        query: str = "",
        life: str = "",
        slot: int | None = None,
    ) -> None:
        """Without a query there is no fence, because there is no ledger."""
        self._clients, self._positions, self._fences = clients, positions, fences
        self._name, self._query, self._life, self._slot = name, query, life, slot
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._published: dict[int | None, Fence] = {}
        self._slots_ended = False
        self._epoch = 0
        self._about = ""

    def publish(
        self,
        staged: Sequence[StagedRows],
        batch: PublishedBatch | None,
        owned: Check | None = None,
        slots_used: Callable[[], bool] = lambda: False,
    ) -> Position:
        """Make the output of a batch visible, unless it is already. Return the position after it.

        With `owned`, the ledger decides who may write: the owner, if fenced by a process that has lost the query,
        fences that one in turn. If tasks of an earlier driver may have open transactions (`slots_used`), they are ended
        before output that belongs to slots is published.
        """
        retry = Retry(_ENOUGH_MS)
        with self._lock:
            self._begin_epoch(batch)
            in_slots = self._slot is None and any(output.by_task for output in staged)
            while True:
                try:
                    if in_slots and not self._slots_ended and slots_used():
                        self._ready(owned)
                        self._end_slots(owned)
                        self._published = self._fences.read(self._query)
                    self._slots_ended = self._slots_ended or in_slots
                    return self._publish(staged, batch, owned)
                except (KafkaException, SystemError) as error:
                    last = retry.tries == _ATTEMPTS - 1 or not retry.wait()
                    self._recover(self._cause(error), last=last, owned=owned)

    def last_fence(self) -> Fence | None:
        """Return the last published batch, of this process or an earlier one. Raise if a later one is published in
        part."""
        with self._lock:
            self._producer = None
            try:
                self._ready()
            except KafkaException as error:
                raise self._clients.translated(error.args[0]) from error
            whole = self._published.get(None)
            current = [fence for fence in self._published.values() if fence.life == self._life]
            last = max((fence.number for fence in current), default=0)
            if last and (whole is None or whole.life != self._life or whole.number < last):
                raise PublishedInPart(self._query, last)
            return whole

    def has_published(self, batch: PublishedBatch, owned: Check) -> bool:
        """Whether Kafka holds all output of a batch. If not, tasks may publish theirs: end the transactions that
        earlier drivers left open in the slots of the query, once.
        """
        with self._lock:
            self._begin_epoch(batch)
            try:
                self._ready(owned)
                if is_published(self._published.get(None), fence_of(batch, self._life), self._query):
                    return True
                if not self._slots_ended:
                    self._end_slots(owned)
                return False
            except KafkaException as error:
                raise self._clients.translated(error.args[0]) from error

    def _begin_epoch(self, batch: PublishedBatch | None) -> None:
        """Read the fences again after a start of the query: another process may have run it in between."""
        if batch is not None and batch.epoch != self._epoch:
            self._epoch, self._producer, self._slots_ended = batch.epoch, None, False

    def _end_slots(self, owned: Check | None) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(self._end_slot, range(SLOTS)))
        if owned is not None:
            owned()
        self._slots_ended = True

    def _end_slot(self, slot: int) -> None:
        producer = self._clients.producer(
            transactional_id=slot_name(self._name, slot), transaction_timeout_ms=TIMEOUT_MS
        )
        _retrying(lambda: producer.init_transactions(TIMEOUT_S))

    def close(self) -> None:
        with self._lock:
            self._producer = None

    def _publish(self, staged: Sequence[StagedRows], batch: PublishedBatch | None, owned: Check | None) -> Position:
        producer = self._ready(owned)
        wanted = None if batch is None else fence_of(batch, self._life)
        if wanted is not None and is_published(self._published.get(self._slot), wanted, self._query):
            return self._ends_of(staged)
        outputs = [output for output in staged if wanted is None or not self._is_in_slot(output, wanted)]
        delivery = Delivery(len(outputs) + 1)
        producer.begin_transaction()
        for output in outputs:
            for number, record in enumerate(outgoing(output.rows()), 1):
                # One acknowledgement is enough: a lost record fails the whole transaction.
                report = delivery if number == output.count else None
                send(producer, output.topic, output.partition, record, report)
        if wanted is not None:
            now = now_ms()
            key = fence_key(self._query, self._slot).encode()
            send(producer, TOPIC, PARTITION, Outgoing(key, wanted.to_bytes(), now, None), delivery)
        if producer.flush(TIMEOUT_MS / 1000):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if delivery.error is not None:
            self._about = delivery.failed_topic
            raise KafkaException(delivery.error)
        failpoint("log.publish.written" if self._slot is None else "log.publish.slot.written")
        _retrying(lambda: producer.commit_transaction(TIMEOUT_S))
        if wanted is not None:
            self._published[self._slot] = wanted
        self._positions.wait_until_visible(
            {topic_partition: max(offsets) for topic_partition, offsets in delivery.offsets.items()}
        )
        position = Position.after(
            (*topic_partition, max(offsets) + 1)
            for topic_partition, offsets in delivery.offsets.items()
            if topic_partition != (TOPIC, PARTITION)
        )
        return position if len(outputs) == len(staged) else position | self._ends_of(staged)

    def _is_in_slot(self, output: StagedRows, wanted: Fence) -> bool:
        """Whether a task of an earlier attempt has published some output, which the driver publishes this time."""
        if self._slot is not None or not output.by_task:
            return False
        return is_published(self._published.get(slot_of(output.topic, output.partition)), wanted, self._query)

    def _ends_of(self, staged: Sequence[StagedRows]) -> Position:
        """Return a position after output that an earlier process has published: the ends of its partitions."""
        written = {(output.topic, output.partition) for output in staged}
        ends = self._positions.ends(sorted({topic for topic, _ in written}))
        return Position.after((topic, partition, ends[topic][partition]) for topic, partition in written)

    def _ready(self, owned: Check | None = None) -> Producer:
        """Return the producer, after open transactions of earlier ones have ended, so that the fence is final.

        A process that was paused must not write when it resumes, so it checks who owns the query after fencing all
        others. It also checks before, so as not to fence the owner.
        """
        if self._producer is None:
            if owned is not None:
                owned()
                failpoint("log.publish.owned")
            producer = self._clients.producer(
                transactional_id=self._name,
                transaction_timeout_ms=TIMEOUT_MS,
            )
            _retrying(lambda: producer.init_transactions(TIMEOUT_S))
            if self._query:
                self._fences.prepare()
                self._published = self._fences.read(self._query)
            if owned is not None:
                owned()
            self._producer = producer
        return self._producer

    def _cause(self, error: KafkaException | SystemError) -> KafkaError:
        """Return the original error.

        After a fatal error, calls of the producer fail with `_FATAL`, or with a `SystemError` if the error meets a
        delivery report or a log line. The answer to an abort names the original error.
        """
        known: KafkaError | None = error.args[0] if isinstance(error, KafkaException) else None
        if known is not None and known.code() != KafkaError._FATAL:
            return known
        try:
            if self._producer is not None:
                self._producer.abort_transaction(TIMEOUT_S)
        except KafkaException as reported:
            original: KafkaError = reported.args[0]
            if original.fatal() or known is None:
                return original
        if known is None:
            return KafkaError(KafkaError._FAIL, str(error), retriable=True)
        return KafkaError(KafkaError._FATAL, known.str(), fatal=True)

    def _recover(self, error: KafkaError, *, last: bool, owned: Check | None) -> None:
        """Abort the transaction so that it can be repeated, or raise why it cannot."""
        if error.code() in _FENCED:
            self._producer = None
            if last or owned is None:
                raise QueryFenced(self._query)
            return
        slow = error.code() in _SLOW
        hopeless = not (slow or error.retriable() or error.txn_requires_abort() or error.fatal())
        try:
            if error.fatal() or self._producer is None:
                raise KafkaException(error)
            self._producer.abort_transaction(TIMEOUT_S)
        except KafkaException:
            # The next producer ends open transactions of this one, and the fence has the outcome.
            self._producer = None
        if hopeless or last:
            raise self._clients.translated(error, self._about)


def slot_name(name: str, slot: int) -> str:
    """Return the transactional id of a slot. No name of a query has a slash, so none has this id."""
    return f"{name}/slot-{slot}"


def _retrying(step: Callable[[], None]) -> None:
    """Repeat a step that can simply be repeated: the client resumes."""
    retry = Retry(round(2000 * TIMEOUT_S))
    while True:
        try:
            return step()
        except KafkaException as error:
            if not error.args[0].retriable() or not retry.wait():
                raise
