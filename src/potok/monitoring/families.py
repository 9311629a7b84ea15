"""The list of all metrics. docs/metrics.md, the alerts and the dashboard are generated from it."""

from __future__ import annotations

from potok.monitoring.family import BATCH_BUCKETS, BYTES, READ_BUCKETS, SECONDS, Elsewhere, Family

STATES = ("starting", "running", "waiting", "paused", "failed", "stopped")

QUERY_STATE = Family(
    "potok_query_state",
    "gauge",
    "1 for the state that a query is in, 0 for the others: starting, running, waiting (for a server), paused, failed, "
    "stopped.",
    ("query", "state"),
    elsewhere=Elsewhere("kafka_streams_state (stream-state)", "query-status", "jobState"),
)
BATCHES = Family(
    "potok_batches_total",
    "counter",
    "Batches that a query has committed since it was created.",
    ("query",),
    elsewhere=Elsewhere("commit-total", "", "numberOfCompletedCheckpoints"),
)
BATCH_DURATION = Family(
    "potok_batch_duration_seconds",
    "histogram",
    "Duration of committed batches by phase: plan, execute, deliver (to sinks before the commit), commit, total. "
    "Queries of one server share plan and execute.",
    ("query", "phase"),
    SECONDS,
    BATCH_BUCKETS,
    Elsewhere("process-latency-avg, commit-latency-avg", "", "lastCheckpointDuration"),
)
LAST_COMMIT = Family(
    "potok_last_commit_timestamp_seconds",
    "gauge",
    "When a query last committed a batch, in seconds since 1970.",
    ("query",),
    SECONDS,
)
RECORDS = Family(
    "potok_records_total",
    "counter",
    "Records that committed batches read from topics (direction in) and wrote to topics (out) since the query was "
    "created. Repeated attempts do not count.",
    ("query", "direction"),
    elsewhere=Elsewhere(
        "process-total, records-produced-total", "messages-consumed-total, messages-produced-total", "numRecordsIn/Out"
    ),
)
STEP_RECORDS = Family(
    "potok_step_records_total",
    "counter",
    "Records that entered (direction in) and left (out) a step in committed batches.",
    ("query", "step", "direction"),
    elsewhere=Elsewhere("process-total (processor-node)", "", "numRecordsIn/Out (operator)"),
)
DEAD_LETTERS = Family(
    "potok_dead_letters_total",
    "counter",
    "Records that became dead letters, by reason: decode, timestamp, error, late, no_key, encode, refused.",
    ("query", "reason"),
    elsewhere=Elsewhere("dropped-records-total", "error-rate", ""),
)
LATE_RECORDS = Family(
    "potok_late_records_total",
    "counter",
    "Records that arrived after the grace period of their window, by step.",
    ("query", "step"),
    elsewhere=Elsewhere("dropped-records-total", "late-record-drop", "numLateRecordsDropped"),
)
EXPRESSION_FAILURES = Family(
    "potok_expression_failures_total",
    "counter",
    "Expressions of SQL statements that failed for a record and were NULL.",
    ("query",),
    elsewhere=Elsewhere(ksqldb="processing-log entries"),
)
TIME_JUMPS = Family(
    "potok_stream_time_jumps_total",
    "counter",
    "Records that advanced the stream time of their partition by more than a day.",
    ("query", "topic"),
)
SOURCE_LAG = Family(
    "potok_source_lag_records",
    "gauge",
    "Records of a topic that a query has not committed yet.",
    ("query", "topic"),
    elsewhere=Elsewhere("records-lag", "consumer-lag", "pendingRecords"),
)
SOURCE_LAG_SECONDS = Family(
    "potok_source_lag_seconds",
    "gauge",
    "Age of the oldest record of a topic that a query has not committed yet; 0 if it has committed all.",
    ("query", "topic"),
    SECONDS,
    elsewhere=Elsewhere("record-e2e-latency-max", "", "currentFetchEventTimeLag"),
)
WATERMARK_LAG = Family(
    "potok_watermark_lag_seconds",
    "gauge",
    "How far the watermark of a windowed step is behind the clock.",
    ("query", "step"),
    SECONDS,
    elsewhere=Elsewhere(flink="currentInputWatermark, watermarkLag"),
)
FRESHNESS = Family(
    "potok_table_freshness_seconds",
    "gauge",
    "Age of the oldest record that a table does not contain yet, over all topics that feed it; 0 if it contains all.",
    ("query", "table"),
    SECONDS,
)
STATE_BYTES = Family(
    "potok_state_bytes",
    "gauge",
    "Size of the state of a query.",
    ("query",),
    BYTES,
    elsewhere=Elsewhere("rocksdb total-sst-files-size", "storage-utilization", "lastCheckpointSize"),
)
STATE_KEYS = Family(
    "potok_state_keys",
    "gauge",
    "Keys of a table.",
    ("query", "table"),
    elsewhere=Elsewhere("num-keys (estimate-num-keys)", "num_stateful_tasks", "rocksdb.estimate-num-keys"),
)
RESTARTS = Family(
    "potok_restarts_total",
    "counter",
    "Starts of a query in this process after a failure, by cause: log, state, sink, query, or group (all queries "
    "together).",
    ("query", "cause"),
    elsewhere=Elsewhere("failed-stream-threads", "query-restart-count", "numRestarts"),
)
SINK_RETRIES = Family(
    "potok_sink_retries_total",
    "counter",
    "Batches that were delivered again because a sink did not respond.",
    ("query",),
    elsewhere=Elsewhere("record-retry-total", "", "numRecordsSendErrors"),
)
WAITS = Family(
    "potok_waits_total",
    "counter",
    "How often a query waited and tried again, by what did not respond: log, state, sink or query.",
    ("query", "cause"),
)
GROUP_LAG = Family(
    "kafka_consumergroup_group_lag",
    "gauge",
    "Records of a partition that a query, or a consumer group of the log, has not committed yet; the group is the name "
    "of the query. By the name of kafka-lag-exporter, for existing alerts.",
    ("group", "topic", "partition"),
    elsewhere=Elsewhere("records-lag", "consumer-lag", "pendingRecords"),
)
GROUP_LAG_SECONDS = Family(
    "kafka_consumergroup_group_lag_seconds",
    "gauge",
    "Age of the oldest record of a partition that a query has not committed yet. By the name of kafka-lag-exporter.",
    ("group", "topic", "partition"),
    SECONDS,
)
REBALANCES = Family(
    "potok_consumer_group_rebalances_total",
    "counter",
    "Rebalances of a consumer group of the log.",
    ("group",),
    elsewhere=Elsewhere("rebalance-total", "", ""),
)
GATEWAY_RECEIVED = Family(
    "potok_gateway_received_total",
    "counter",
    "Records that a listener has received: landed, duplicates, lost or still buffered.",
    ("listener",),
    elsewhere=Elsewhere(flink="numRecordsIn (source)"),
)
GATEWAY_LANDED = Family(
    "potok_gateway_landed_total", "counter", "Records of a listener that are durable in its topic.", ("listener",)
)
GATEWAY_DUPLICATES = Family(
    "potok_gateway_duplicates_total", "counter", "Records of a listener that had landed before.", ("listener",)
)
GATEWAY_LOST = Family(
    "potok_gateway_lost_total",
    "counter",
    "Records that a listener has lost, by reason: malformed, too_large, expired, dropped_newest, dropped_oldest, "
    "not_accepted, unreadable, kernel_dropped, missing.",
    ("listener", "reason"),
)
GATEWAY_REFUSED = Family(
    "potok_gateway_refused_total",
    "counter",
    "Records that a listener did not accept; the sender was notified, and may send them again.",
    ("listener", "reason"),
)
GATEWAY_BUFFERED = Family(
    "potok_gateway_buffered_records", "gauge", "Records that a listener has received and not landed.", ("listener",)
)
GATEWAY_UP = Family("potok_gateway_up", "gauge", "Whether a listener works: 0 while it has a problem.", ("listener",))
CDC_STATES = ("starting", "snapshot", "streaming", "waiting", "stopped")
CDC_STATE = Family(
    "potok_cdc_state",
    "gauge",
    "1 for the state that a capture is in, 0 for the others: starting, snapshot, streaming, waiting, stopped.",
    ("capture", "state"),
)
CDC_CHANGES = Family(
    "potok_cdc_changes_total", "counter", "Changes that have landed since the start of a capture.", ("capture",)
)
CDC_SNAPSHOT_ROWS = Family(
    "potok_cdc_snapshot_rows", "gauge", "Rows of the snapshot of a table that have landed.", ("capture", "table")
)
CDC_LAG_SECONDS = Family(
    "potok_cdc_lag_seconds",
    "gauge",
    "How far a capture is behind its database: the time since it had last landed everything; 0 if it has.",
    ("capture",),
    SECONDS,
    elsewhere=Elsewhere(flink="currentFetchEventTimeLag"),
)
CDC_LAG_BYTES = Family(
    "potok_cdc_lag_bytes", "gauge", "How far the log of the database is ahead of what has landed.", ("capture",), BYTES
)
CDC_SLOT_BYTES = Family(
    "potok_cdc_slot_retained_bytes",
    "gauge",
    "Bytes of its log that a database retains for the slot of a capture.",
    ("capture",),
    BYTES,
)
PULL_SECONDS = Family(
    "potok_pull_query_seconds",
    "histogram",
    "Duration of reads of tables: kind key for GET /tables, sql for pull queries.",
    ("kind",),
    SECONDS,
    READ_BUCKETS,
    Elsewhere("", "pull-query-requests-latency", ""),
)
PUSH_QUERIES = Family(
    "potok_push_queries",
    "gauge",
    "Open push queries.",
    elsewhere=Elsewhere("", "push-query-connections", ""),
)
BUILD_INFO = Family("potok_build_info", "gauge", "Always 1; the label is the version of Potok.", ("version",))
SCRAPE_FAILURES = Family(
    "potok_scrape_failures", "gauge", "Parts of the process whose metrics could not be collected by this scrape."
)
SERIES_LEFT_OUT = Family(
    "potok_scrape_series_left_out", "gauge", "Series that this scrape left out because a metric had too many."
)
CPU_SECONDS = Family(
    "process_cpu_seconds_total", "counter", "User and system time of the driver process.", unit=SECONDS
)
START_TIME = Family(
    "process_start_time_seconds", "gauge", "When the process started, in seconds since 1970.", unit=SECONDS
)
RESIDENT_BYTES = Family("process_resident_memory_bytes", "gauge", "Resident memory of the driver process.", unit=BYTES)
OPEN_FDS = Family("process_open_fds", "gauge", "Open file descriptors.")
MAX_FDS = Family("process_max_fds", "gauge", "The largest number of open file descriptors.")

SECTIONS: dict[str, tuple[Family, ...]] = {
    "Queries": (QUERY_STATE, BATCHES, BATCH_DURATION, LAST_COMMIT, RESTARTS, WAITS, SINK_RETRIES),
    "Records": (RECORDS, STEP_RECORDS, DEAD_LETTERS, LATE_RECORDS, EXPRESSION_FAILURES, TIME_JUMPS),
    "Lag and freshness": (
        SOURCE_LAG,
        SOURCE_LAG_SECONDS,
        WATERMARK_LAG,
        FRESHNESS,
        GROUP_LAG,
        GROUP_LAG_SECONDS,
        REBALANCES,
    ),
    "State": (STATE_BYTES, STATE_KEYS),
    "Serving": (PULL_SECONDS, PUSH_QUERIES),
    "Gateway": (
        GATEWAY_RECEIVED,
        GATEWAY_LANDED,
        GATEWAY_DUPLICATES,
        GATEWAY_LOST,
        GATEWAY_REFUSED,
        GATEWAY_BUFFERED,
        GATEWAY_UP,
    ),
    "Change data capture": (CDC_STATE, CDC_CHANGES, CDC_SNAPSHOT_ROWS, CDC_LAG_SECONDS, CDC_LAG_BYTES, CDC_SLOT_BYTES),
    "Process": (
        BUILD_INFO,
        SCRAPE_FAILURES,
        SERIES_LEFT_OUT,
        CPU_SECONDS,
        START_TIME,
        RESIDENT_BYTES,
        OPEN_FDS,
        MAX_FDS,
    ),
}

FAMILIES = tuple(family for section in SECTIONS.values() for family in section)
