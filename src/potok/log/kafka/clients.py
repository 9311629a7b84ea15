"""The connections of one process to one cluster, and the translation of responses."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from potok.errors import LogError
from potok.log.errors import BrokerClosed, InvalidName, KeylessRecord, TopicExists, TopicNotFound
from potok.log.kafka.errors import KafkaNotReady, KafkaRefused, KafkaUnreachable, OptionError
from potok.log.kafka.options import KafkaOptions
from potok.redact import safe_cause
from potok.retry_policy import BRIEFLY_MS, Retry, is_brief

_logger = logging.getLogger(__name__)
# Visible only if the program configures logging.
_logger.addHandler(logging.NullHandler())

V = TypeVar("V")

TIMEOUT_S = 30.0
_SILENT_FOR_S = 1.0
"""How long a response may take: brokers restart, and leaders change."""

_LOOK_S = 0.1
_SLICE_S = 0.5

DEFAULTS = {
    # The client's output goes through `error_cb`, into errors of Potok.
    "log_level": "2",
    "topic.metadata.propagation.max.ms": "10000",
    "reconnect.backoff.max.ms": "1000",
}

_MISSING = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_ID,
)
_SILENT = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError.REQUEST_TIMED_OUT,
)
_SUMMARY = (KafkaError._ALL_BROKERS_DOWN,)
"""Less specific than the errors before it."""

_DENIED = (
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
)
_PASSING = (
    KafkaError._NOENT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)


class Clients:
    """Creates clients with the options of a broker, sends requests, and turns errors into `LogError`s with a hint."""

    def __init__(self, options: KafkaOptions) -> None:
        self.options = options
        self._lock = threading.Lock()
        self._admin: AdminClient | None = None
        self._trouble: KafkaError | None = None
        self._answered = False
        self._silent_at = -_SILENT_FOR_S
        self._closed = False

    def configuration(self, **special: object) -> dict[str, Any]:
        """Return the configuration of a client: defaults, the user's options, and what this client requires."""
        must = {name.replace("_", "."): value for name, value in special.items()}
        defaults = {} if "debug" in self.options.values else DEFAULTS
        return {**defaults, **self.options.client(), **must, "error_cb": self._hear, "logger": _logger}

    def admin(self) -> AdminClient:
        with self._lock:
            if self._closed:
                raise BrokerClosed(self.options.url)
            if self._admin is None:
                self._admin = self.made(AdminClient, self.configuration())
            return self._admin

    def consumer(self, **special: object) -> Consumer:
        return self.made(Consumer, self.configuration(**special))

    def reader(self, **special: object) -> Consumer:
        """Create a consumer that is assigned offsets by hand, commits none, and sees committed records only."""
        return self.consumer(
            group_id=self.options.values.get("group.id", "potok-reader"),
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,
            isolation_level="read_committed",
            auto_offset_reset="error",
            # The broker reports the end of a partition in an empty response, which should come at once.
            fetch_wait_max_ms=0,
            # By default, a consumer with a full queue waits for a second before it checks for room again.
            fetch_queue_backoff_ms=1,
            **special,
        )

    def producer(self, **special: object) -> Producer:
        """Create a producer with one request in flight per broker.

        A broker accepts any sequence number from a producer that is new to a partition. If it rejects the first
        request, because it is not the leader yet, and accepts the second one, librdkafka counts the records of the
        first as delivered, and they are lost.
        """
        return self.made(Producer, self.configuration(max_in_flight_requests_per_connection=1, **special))

    def made(self, kind: Callable[[dict[str, Any]], V], configuration: dict[str, Any]) -> V:
        """Create a client, or raise an error that names the invalid option."""
        try:
            return kind(configuration)
        except KafkaException as error:
            why = self.options.hide(_error_text(error))
            hint = "options are those of librdkafka, in the URL, in POTOK_KAFKA_... or in [kafka] of potok.toml"
            raise OptionError(f"Kafka's client cannot be set up: {why}", hint) from safe_cause(error)

    def listed_topics(self) -> list[str]:
        """Return the names of all topics. This request blocks, so it is made with a short timeout and repeated."""
        began = time.monotonic()
        while True:
            try:
                found = list(self.admin().list_topics(timeout=_SLICE_S).topics)
            except KafkaException as error:
                if error.args[0].code() not in _SILENT:
                    raise self.translated(error.args[0]) from error
                self._give_up_after(time.monotonic() - began)
            else:
                self._answered, self._trouble = True, None
                return found

    def results_of(self, futures: Mapping[str, Future[V]]) -> dict[str, V]:
        """Wait for the responses about several topics; raise the first error."""
        return {topic: self.answer(future, topic) for topic, future in futures.items()}

    def answer(self, future: Future[V], about: str = "") -> V:
        """Wait for a response, at most as long as success is possible."""
        began = time.monotonic()
        while True:
            try:
                found = future.result(_LOOK_S)
            except NotYet:
                self._give_up_after(time.monotonic() - began)
            except KafkaException as error:
                raise self.translated(error.args[0], about) from error
            else:
                self._answered, self._trouble = True, None
                return found

    def retrying(self, question: Callable[[], V]) -> V:
        """Repeat a request that may be repeated, while the brokers elect a leader."""
        limit_ms = round(self._timeout_s() * 1000)
        retry = Retry(limit_ms, most_s=_SLICE_S)
        while True:
            try:
                return question()
            except KafkaNotReady:
                if not limit_ms or not retry.wait():
                    raise
                self.look_around()

    def look_around(self) -> None:
        """Refresh the metadata: the client would keep asking the former leaders."""
        try:
            self.admin().list_topics(timeout=_SLICE_S)
        except KafkaException as error:
            _logger.debug("no leader is known: %s", error)

    def translated(self, error: KafkaError, about: str = "") -> LogError:
        """Convert an error of Kafka. `about` is the topic that it concerns."""
        code, why = error.code(), self.options.hide(error.str() or error.name())
        trouble = self._trouble
        if code in _SILENT and trouble is not None and trouble.code() in _DENIED:
            code, why = trouble.code(), self.options.hide(trouble.str())
        if code in _MISSING and about:
            return TopicNotFound(about)
        if code in _PASSING:
            return KafkaNotReady(self.options.bootstrap, why)
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return TopicExists(about)
        if code == KafkaError.TOPIC_EXCEPTION:
            return InvalidName("topic", about, "use 1 to 249 letters, digits, dots, dashes and underscores")
        if code == KafkaError.INVALID_RECORD and about:
            return KeylessRecord(about)
        if code in _TOO_LARGE:
            hint = "keep large objects elsewhere and send a reference, or raise max.message.bytes of the topic"
            return KafkaRefused(self.options.bootstrap, why, hint)
        if code in _SILENT:
            return KafkaUnreachable(self.options.bootstrap, self.options.hide(trouble.str()) if trouble else why)
        if code in _DENIED:
            hint = "see security.protocol, sasl.* and ssl.* in the URL, in POTOK_KAFKA_... or in [kafka] of potok.toml"
            return KafkaRefused(self.options.bootstrap, why, hint)
        return KafkaRefused(self.options.bootstrap, f"{why} ({error.name()})")

    def close(self) -> None:
        with self._lock:
            self._closed, self._admin = True, None

    def _give_up_after(self, seconds: float) -> None:
        if self._admin is not None:
            self._admin.poll(0)
        trouble = self._trouble
        if trouble is not None and trouble.code() in _DENIED and not self._answered:
            raise self.translated(trouble)
        hopeless = trouble is not None and not self._answered and seconds > self.options.first_timeout_s
        if hopeless or seconds > self._timeout_s():
            self._silent_at = time.monotonic()
            why = self.options.hide(trouble.str()) if trouble is not None else "no answer"
            raise KafkaUnreachable(self.options.bootstrap, why)

    def _timeout_s(self) -> float:
        """Return how long to wait. A short call that follows a failed one does not wait as long again."""
        if not is_brief():
            return TIMEOUT_S
        return 0.0 if time.monotonic() < self._silent_at + _SILENT_FOR_S else BRIEFLY_MS / 1000

    def _hear(self, error: KafkaError) -> None:
        """Called by the clients while they are waited for; most errors are transient."""
        _logger.debug("Kafka's client says: %s", self.options.hide(error.str()))
        if self._trouble is None or (self._trouble.code() not in _DENIED and error.code() not in _SUMMARY):
            self._trouble = error


def _error_text(error: KafkaException) -> str:
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)
