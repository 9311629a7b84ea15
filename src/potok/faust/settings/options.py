"""Options of Faust: its URLs in Potok's form; options without effect are accepted, with a message in the log."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from typing import Any

from potok.errors import Location, TopologyError
from potok.faust.settings.app_settings import AppSettings

_logger = logging.getLogger("potok.faust")

_BESIDE_THE_LOG = ("rocksdb:", "memory:", "aerospike:")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


APP = frozenset(AppSettings.__annotations__)
TOPIC = _names("replicas deleting acks internal config maxsize loop allow_empty pattern has_prefix")
TABLE = _names(
    """partitions help standby_buffer_size on_recover use_partitioner recovery_buffer_size extra_topic_configs
    changelog_topic on_changelog_event options"""
)
SET_TABLE = _names("default start_manager manager_topic_name manager_topic_suffix")
CHANNEL = _names("schema key_type value_type maxsize loop")
AGENT = _names("supervisor_strategy isolated_partitions use_reply_headers internal")
PAGE = _names("cors_options")
TIMED = _names("on_leader traced name max_drift_correction")
USED = _names(
    """web_enabled web_host web_port web_bind canonical_url changelog_topic autodiscover origin version timezone
    topic_partitions key_serializer value_serializer reply_expires url broker_credentials ssl_context
    consumer_auto_offset_reset help"""
)
"""Options that have an effect."""


_NOT_TAKEN = {
    "pattern": 'name the topics: app.topic("orders-eu", "orders-us")',
    "has_prefix": "use the name that the topic has in the log",
}
"""Options that must not be ignored silently, with what to do instead."""

_CHOICES = {"consumer_auto_offset_reset": ("earliest", "latest")}


def left_out(what: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    """Report which options have no effect; refuse one that Faust does not have either."""
    for name in sorted(_NOT_TAKEN.keys() & {name for name, value in given.items() if value}):
        raise TopologyError(f"{what}: {name}= has no effect", hint=_NOT_TAKEN[name], at=Location.of_caller())
    for name in sorted(_CHOICES.keys() & {name for name, value in given.items() if value is not None}):
        if given[name] not in _CHOICES[name]:
            hint = f"write one of: {', '.join(_CHOICES[name])}"
            raise TopologyError(f"{what}: {name}= cannot be {given[name]!r}", hint=hint, at=Location.of_caller())
    unknown = sorted(set(given) - known)
    if unknown:
        close = difflib.get_close_matches(unknown[0], sorted(known), n=1)
        hint = f"did you mean {close[0]}=?" if close else "leave it out"
        raise TopologyError(f"{what} has no option {unknown[0]}=", hint=hint, at=Location.of_caller())
    idle = sorted(set(given) - USED)
    if idle:
        note(f"{what}: {', '.join(f'{name}=' for name in idle)} not used here")


_unheard: list[str] = []


def note(text: str) -> None:
    """Log a message; what a program defines before logging is configured is buffered until then."""
    if not _logger.hasHandlers():
        _unheard.append(text)
    _logger.info("%s", text)


def say_unheard() -> None:
    """Log the messages that were buffered before logging was configured."""
    while _unheard:
        _logger.info("%s", _unheard.pop(0))


def broker_url(given: Any) -> str | None:
    """Return the URL of the log. Several Kafka servers may be given as a list, or in one text with `;`."""
    if given is None:
        return None
    listed = [str(item) for item in given] if isinstance(given, list | tuple) else str(given).split(";")
    first, *rest = [item.strip() for item in listed if item.strip()]
    for scheme in ("aiokafka://", "confluent://"):
        first = first.replace(scheme, "kafka://", 1)
    return ",".join([first, *(item.partition("://")[2] or item for item in rest)])


def state_url(given: Any) -> str | None:
    """Return the URL of the state: Faust's stores inside the worker become the store next to the log."""
    if given is None:
        return None
    url = str(given)
    if url.startswith(_BESIDE_THE_LOG):
        note(f"store {url}: state is stored next to the log, in fenced cells")
        return None
    return url
