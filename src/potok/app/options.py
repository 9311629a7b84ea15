"""Options of Faust that mean nothing here: they are accepted, and it is said that they do nothing."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from typing import Any

from potok.errors import Location, TopologyError

_logger = logging.getLogger("potok.app")


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
    worker_redirect_stdouts worker_redirect_stdouts_level loop"""
)
TOPIC = _names("replicas deleting acks internal config maxsize loop allow_empty")
TABLE = _names(
    """partitions help standby_buffer_size on_recover use_partitioner recovery_buffer_size extra_topic_configs
    changelog_topic on_changelog_event"""
)
AGENT = _names("concurrency supervisor_strategy isolated_partitions use_reply_headers internal")
TIMED = _names("on_leader traced name max_drift_correction")


def left_out(what: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    """Say which options do nothing; one that Faust has not either is refused."""
    unknown = sorted(set(given) - known)
    if unknown:
        close = difflib.get_close_matches(unknown[0], sorted(known), n=1)
        hint = f"did you mean {close[0]}=?" if close else "leave it out"
        raise TopologyError(f"{what} has no option {unknown[0]}=", hint=hint, at=Location.of_caller())
    if given:
        _logger.info("%s: %s not used here", what, ", ".join(f"{name}=" for name in sorted(given)))
