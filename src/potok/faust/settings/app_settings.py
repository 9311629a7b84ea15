"""The settings of an app in Faust, with their types. Most have no effect here; `options.USED` lists those that do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta, tzinfo
from pathlib import Path
from ssl import SSLContext
from typing import Any, Literal

from potok.faust.settings.credentials import Credentials

Seconds = timedelta | float


class AppSettings:
    """Every setting is also an option of `App(...)`. One that was not given is None."""

    # The app.
    autodiscover: bool | str | Iterable[str] | Callable[[], Iterable[str]] | None
    origin: str | None
    version: int | str | None
    debug: bool | None
    datadir: Path | str | None
    tabledir: Path | str | None
    id_format: str | None
    env_prefix: str | None
    config_source: Any
    timezone: tzinfo | str | None
    url: str | Sequence[str] | None
    cache: str | None
    loop: Any
    agent_supervisor: Any
    blocking_timeout: Seconds | None
    processing_guarantee: str | None
    logging_config: Mapping[str, Any] | None
    loghandlers: Sequence[Any] | None
    worker_redirect_stdouts: bool | None
    worker_redirect_stdouts_level: int | str | None

    # The connection to Kafka.
    broker_api_version: str | None
    broker_check_crcs: bool | None
    broker_client_id: str | None
    broker_commit_every: int | None
    broker_commit_interval: Seconds | None
    broker_commit_livelock_soft_timeout: Seconds | None
    broker_consumer: str | Sequence[str] | None
    broker_credentials: Credentials | SSLContext | None
    broker_heartbeat_interval: Seconds | None
    broker_max_poll_interval: Seconds | None
    broker_max_poll_records: int | None
    broker_producer: str | Sequence[str] | None
    broker_rebalance_timeout: Seconds | None
    broker_request_timeout: Seconds | None
    broker_session_timeout: Seconds | None
    ssl_context: SSLContext | None
    consumer_api_version: str | None
    consumer_auto_offset_reset: Literal["earliest", "latest"] | None
    consumer_connections_max_idle_ms: int | None
    consumer_group_instance_id: str | None
    consumer_max_fetch_size: int | None
    consumer_metadata_max_age_ms: int | None
    producer_acks: int | None
    producer_api_version: str | None
    producer_compression_type: str | None
    producer_connections_max_idle_ms: int | None
    producer_linger: Seconds | None
    producer_linger_ms: int | None
    producer_max_batch_size: int | None
    producer_max_request_size: int | None
    producer_metadata_max_age_ms: int | None
    producer_partitioner: Callable[..., int] | None
    producer_request_timeout: Seconds | None
    producer_threaded: bool | None

    # Topics, streams and tables.
    key_serializer: str | None
    value_serializer: str | None
    topic_allow_declare: bool | None
    topic_disable_leader: bool | None
    topic_partitions: int | None
    topic_replication_factor: int | None
    stream_ack_cancelled_tasks: bool | None
    stream_ack_exceptions: bool | None
    stream_buffer_maxsize: int | None
    stream_processing_timeout: Seconds | None
    stream_publish_on_commit: bool | None
    stream_recovery_delay: Seconds | None
    stream_wait_empty: bool | None
    recovery_consistency_check: bool | None
    reply_create_topic: bool | None
    reply_expires: Seconds | None
    reply_to: str | None
    reply_to_prefix: str | None
    store_check_exists: bool | None
    table_cleanup_interval: Seconds | None
    table_key_index_size: int | None
    table_standby_replicas: int | None
    aerospike_retries_on_exception: int | None
    aerospike_sleep_seconds_between_retries_on_exception: Seconds | None
    crash_app_on_aerospike_exception: bool | None

    # Pages.
    canonical_url: str | None
    web: str | None
    web_application_options: Mapping[str, Any] | None
    web_bind: str | None
    web_cors_options: Mapping[str, Any] | None
    web_enabled: bool | None
    web_graph_enabled: bool | None
    web_host: str | None
    web_in_thread: bool | None
    web_metrics_enabled: bool | None
    web_port: int | None
    web_router_enabled: bool | None
    web_ssl_context: SSLContext | None
    web_stats_enabled: bool | None
    web_tables_enabled: bool | None
    web_transport: str | None

    # Classes, or their names, that replace those of Faust.
    Agent: type[Any] | str | None
    ConsumerScheduler: type[Any] | str | None
    Event: type[Any] | str | None
    GlobalTable: type[Any] | str | None
    HttpClient: type[Any] | str | None
    LeaderAssignor: type[Any] | str | None
    Monitor: type[Any] | str | None
    PartitionAssignor: type[Any] | str | None
    Router: type[Any] | str | None
    Schema: type[Any] | str | None
    Serializers: type[Any] | str | None
    SetGlobalTable: type[Any] | str | None
    SetTable: type[Any] | str | None
    Stream: type[Any] | str | None
    Table: type[Any] | str | None
    TableManager: type[Any] | str | None
    Topic: type[Any] | str | None
    Worker: type[Any] | str | None
