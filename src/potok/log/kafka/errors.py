"""Errors of Kafka, in addition to those of any log.

LogError
├── JarsNotFound        jars of Maven Central that could not be fetched
├── PortTaken           the port is used by another program
├── ServerNotStarted    the server of `potok kafka up` exited, or was not ready in time
├── OptionError         an unknown or unusable option of the client
├── KafkaUnreachable    no broker answered in time
│   └── KafkaNotReady   the brokers are still electing leaders
├── KafkaRefused        the brokers rejected a request
├── TimeBefore1970      a record whose time Kafka cannot store
├── TimeRefused         a record whose time is too far from the present for its topic
├── QueryFenced         another process has taken over the output of the query
├── PublishedOtherwise  a batch whose output was published from other records
└── PublishedInPart     a batch of which only some output was published
"""

from __future__ import annotations

from pathlib import Path

from potok.errors import LogError


class JarsNotFound(LogError):
    """Jars that could not be fetched."""

    def __init__(self, what: str, why: str, hint: str) -> None:
        super().__init__(f"the jars of {what} could not be fetched: {why}", hint=hint)


class PortTaken(LogError):
    """The port is used by another program."""

    def __init__(self, port: int) -> None:
        super().__init__(
            f"port {port} of this machine is in use by another program",
            hint="pick a free one: potok kafka up --port 0",
        )


class ServerNotStarted(LogError):
    """The server exited, or was not ready in time."""

    def __init__(self, why: str, log: Path) -> None:
        super().__init__(f"Kafka did not start: {why}", hint=f"its log is {log}")


class OptionError(LogError):
    """An unknown or unusable option of Kafka's client."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why, hint=hint)


class KafkaUnreachable(LogError):
    """No broker responded in time."""

    passing = True

    def __init__(self, servers: str, why: str) -> None:
        super().__init__(
            f"Kafka at {servers} does not respond: {why}",
            hint="is it running, and is the address right? for development: potok kafka up, "
            'or without Kafka: broker="file:./data"',
        )


class KafkaNotReady(KafkaUnreachable):
    """The brokers respond, but are still electing leaders."""


class KafkaRefused(LogError):
    """The brokers rejected a request."""

    def __init__(self, servers: str, why: str, hint: str = "") -> None:
        super().__init__(
            f"Kafka at {servers} refused: {why}", hint=hint or "see its log, and the permissions of this user"
        )


class TimeBefore1970(LogError):
    """Kafka stores no time before 1970."""

    def __init__(self, topic: str, timestamp_ms: int) -> None:
        super().__init__(
            f'a record for "{topic}" has the time {timestamp_ms} ms, and Kafka stores no time before 1970',
            hint="give such records another timestamp, and keep the instant in a field of the value",
        )


class TimeRefused(LogError):
    """A topic rejects times so far from the current time."""

    def __init__(self, topic: str, timestamp_ms: int) -> None:
        super().__init__(
            f'topic "{topic}" rejects a record with a time as far from the present as {timestamp_ms} ms',
            hint="raise message.timestamp.before.max.ms or message.timestamp.after.max.ms of the topic",
        )


class QueryFenced(LogError):
    """Another process writes the output of the query."""

    def __init__(self, query: str) -> None:
        super().__init__(
            f'another process has taken over the output of query "{query}"',
            hint="stop one of them; on several machines, let only one run a query of that name",
        )


class PublishedOtherwise(LogError):
    """The output of a batch is already in Kafka, but was computed from other records."""

    def __init__(self, query: str, number: int) -> None:
        super().__init__(
            f'the output of batch {number} of query "{query}" was published before a crash, and the batch now has '
            "other offsets: its ledger was lost, or an older one was restored",
            hint="restore the ledger, or give the query another name to start over",
        )


class PublishedInPart(LogError):
    """Tasks have published some output of a batch, and the driver died before they had published the rest."""

    def __init__(self, query: str, number: int) -> None:
        super().__init__(
            f'only a part of the output of batch {number} of query "{query}" is published',
            hint="start the query, stop it once the batch is committed, and repeat the command",
        )
