"""Translate the options ttl, history and retention into what the topology keeps."""

from __future__ import annotations

from typing import Literal, TypedDict

from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError
from potok.log.maintenance import DELETE, InvalidTopicConfig, policy_of
from potok.topology.nodes.retention import Lifetime

TtlClock = Literal["event", "processing"]


def lifetime_of(ttl: Duration | None, ttl_clock: str, history: Duration | None, at: Location | None) -> Lifetime:
    if ttl_clock not in ("event", "processing"):
        hint = 'write ttl_clock="event" or ttl_clock="processing"'
        raise TopologyError(f'ttl_clock="{ttl_clock}" is not known', hint=hint, at=at)
    if ttl is not None and history is not None:
        hint = "a table that keeps versions expires them by history=; use one of the two"
        raise TopologyError("a table has either a ttl or a history", hint=hint, at=at)
    for name, duration in (("ttl", ttl), ("history", history)):
        if duration is not None and to_ms(duration) <= 0:
            raise TopologyError(f"{name}={duration!r} keeps nothing", hint=f'write {name}="1 day"', at=at)
    return Lifetime(
        None if ttl is None else to_ms(ttl), ttl_clock == "processing", None if history is None else to_ms(history)
    )


class RetentionOptions(TypedDict):
    """The fields of a sink that control the retention of its topic."""

    retention_ms: int | None
    cleanup_policy: str


def topic_retention(
    topic: str, retention: Duration | None, cleanup_policy: str, at: Location | None
) -> RetentionOptions:
    try:
        policy = policy_of(topic, cleanup_policy)
    except InvalidTopicConfig as error:
        raise TopologyError(error.message, hint=error.hint, at=at) from error
    if retention is not None and DELETE not in policy:
        hint = 'write cleanup_policy="compact,delete", or leave retention= out'
        raise TopologyError(f'topic "{topic}" is compacted, so retention= would have no effect', hint=hint, at=at)
    return {"retention_ms": None if retention is None else to_ms(retention), "cleanup_policy": policy}
