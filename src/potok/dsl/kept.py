"""How long a topic that a topology creates keeps its records."""

from __future__ import annotations

from typing import TypedDict

from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError
from potok.log.upkeep import DELETE, InvalidTopicConfig, policy_of


class Kept(TypedDict):
    """The fields of a sink that say so."""

    retention_ms: int | None
    cleanup_policy: str


def topic_kept(topic: str, retention: Duration | None, cleanup_policy: str, at: Location | None) -> Kept:
    try:
        policy = policy_of(topic, cleanup_policy)
    except InvalidTopicConfig as error:
        raise TopologyError(error.message, hint=error.hint, at=at) from error
    if retention is not None and DELETE not in policy:
        hint = 'write cleanup_policy="compact,delete", or leave retention= out'
        raise TopologyError(f'topic "{topic}" is compacted, so retention= would do nothing', hint=hint, at=at)
    return {"retention_ms": None if retention is None else to_ms(retention), "cleanup_policy": policy}
