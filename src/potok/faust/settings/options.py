"""Options of Faust: its URLs in Potok's form; options without effect are accepted, with a message in the log."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from typing import Any

from potok.errors import Location, TopologyError

_logger = logging.getLogger("potok.faust")

_BESIDE_THE_LOG = ("rocksdb:", "memory:", "aerospike:")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


APP = _names(
    """autodiscover origin version debug datadir tabledir web_enabled web_host web_port web_bind web_transport
    topic_partitions topic_replication_factor topic_allow_declare topic_disable_leader table_standby_replicas
    processing_guarantee stream_buffer_maxsize stream_wait_empty stream_publish_on_commit stream_recovery_delay
    broker_commit_every broker_commit_interval broker_max_poll_records broker_session_timeout broker_request_timeout
    broker_heartbeat_interval broker_api_version broker_client_id broker_check_crcs broker_rebalance_timeout
    consumer_max_fetch_size producer_acks producer_linger_ms producer_linger producer_max_batch_size
    producer_max_request_size producer_compression_type logging_config loghandlers cache agent_supervisor canonical_url
    worker_redirect_stdouts worker_redirect_stdouts_level loop
    aerospike_retries_on_exception aerospike_sleep_seconds_between_retries_on_exception blocking_timeout
    broker_commit_livelock_soft_timeout broker_consumer broker_credentials broker_max_poll_interval broker_producer
    config_source consumer_api_version consumer_auto_offset_reset consumer_connections_max_idle_ms
    consumer_group_instance_id consumer_metadata_max_age_ms crash_app_on_aerospike_exception env_prefix id_format
    key_serializer producer_api_version producer_connections_max_idle_ms producer_metadata_max_age_ms
    producer_partitioner producer_request_timeout producer_threaded recovery_consistency_check reply_create_topic
    reply_expires reply_to reply_to_prefix ssl_context store_check_exists stream_ack_cancelled_tasks
    stream_ack_exceptions stream_processing_timeout table_cleanup_interval table_key_index_size timezone url
    value_serializer web web_application_options web_cors_options web_graph_enabled web_in_thread web_metrics_enabled
    web_router_enabled web_ssl_context web_stats_enabled web_tables_enabled
    Agent ConsumerScheduler Event GlobalTable HttpClient LeaderAssignor Monitor PartitionAssignor Router Schema
    Serializers SetGlobalTable SetTable Stream Table TableManager Topic Worker"""
)
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
