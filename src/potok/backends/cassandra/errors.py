"""Convert the errors of Cassandra's driver into errors of Potok."""

from __future__ import annotations

import struct

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    CoordinationFailure,
    DriverException,
    InvalidRequest,
    OperationTimedOut,
    RequestExecutionException,
    Timeout,
    Unauthorized,
    Unavailable,
    WriteFailure,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import (
    ErrorMessage,
    IsBootstrappingErrorMessage,
    OverloadedErrorMessage,
    ServerError,
    TruncateError,
)

from potok.backends.state_url import StoreNotReady, StoreUnreachable, Where
from potok.errors import StateError

DRIVER_ERRORS = (
    DriverException,
    ErrorMessage,
    NoHostAvailable,
    ConnectionException,
    RequestExecutionException,
    OSError,
    # What listens there may not be Cassandra.
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)
"""What the driver raises, whatever the server answers."""

_BUSY = (Timeout, OperationTimedOut, WriteFailure, OverloadedErrorMessage, IsBootstrappingErrorMessage, TruncateError)
_TRANSIENT = (NoHostAvailable, ConnectionException, Unavailable, ServerError, OSError, *_BUSY)


class KeyspaceMissing(StateError):
    """A keyspace that does not exist."""

    def __init__(self, location: str, keyspace: str) -> None:
        statement = (
            f"CREATE KEYSPACE {keyspace} "
            "WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"
        )
        super().__init__(f'the keyspace "{keyspace}" of {location} does not exist', hint=f"create it: {statement}")


class DatacenterMissing(StateError):
    """A `local_dc` that no node belongs to."""

    def __init__(self, location: str, wanted: str, found: list[str]) -> None:
        super().__init__(
            f'no node of Cassandra at {location} is in the datacenter "{wanted}"',
            hint=f"set local_dc to one of: {', '.join(found)}",
        )


def is_transient(error: Exception) -> bool:
    """Return whether the same request may succeed a moment later."""
    return isinstance(error, _TRANSIENT) and not _of_type(error, AuthenticationFailed)


def converted(where: Where, error: Exception) -> StateError:
    """Return the error of Potok for an error of the driver."""
    text = _first_line(_innermost(error))
    if _of_type(error, AuthenticationFailed):
        return StoreUnreachable(str(where), f"Cassandra rejects the user or the password: {text}")
    if isinstance(error, Unavailable):
        cause = f"{error.alive_replicas} of the {error.required_replicas} replicas that {_level(error)} needs are alive"
        return StoreNotReady(str(where), cause, "start the missing nodes: nodetool status shows them")
    if isinstance(error, CoordinationFailure) and not isinstance(error, WriteFailure):
        hint = "see the log of that server; if it names tombstones, compact the table: nodetool compact"
        return StateError(f"Cassandra at {where} failed to read: {text}", hint=hint)
    if isinstance(error, _BUSY):
        hint = "the cluster is overloaded, or nodes are down: see nodetool status; the batch is repeated until then"
        return StoreNotReady(str(where), f"Cassandra does not answer in time: {text}", hint)
    if isinstance(error, _TRANSIENT):
        return StoreUnreachable(str(where), text)
    if isinstance(error, Unauthorized):
        hint = "GRANT SELECT, MODIFY and CREATE on the keyspace to the user of the URL"
        return StateError(f"Cassandra at {where} denies access: {text}", hint=hint)
    if isinstance(error, InvalidRequest) and "oversized" in text:
        hint = "raise commitlog_segment_size of the servers, or keep smaller values: a mutation is half of a segment"
        return StateError(f"a cell is too large for Cassandra at {where}: {text}", hint=hint)
    return StateError(f"Cassandra at {where} rejected the request: {text}", hint="see the log of that server")


def _level(error: Unavailable) -> str:
    return str(ConsistencyLevel.value_to_name.get(error.consistency, error.consistency))


def _of_type(error: BaseException, kind: type[BaseException]) -> bool:
    return isinstance(error, kind) or any(isinstance(inner, kind) for inner in _inner(error))


def _inner(error: BaseException) -> list[BaseException]:
    if not isinstance(error, NoHostAvailable):
        return []
    errors = error.errors.values() if isinstance(error.errors, dict) else error.errors
    return [inner for inner in errors if isinstance(inner, BaseException)]


def _innermost(error: BaseException) -> BaseException:
    return next(iter(_inner(error)), error)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
