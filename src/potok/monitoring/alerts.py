"""Alerts for Prometheus, with what to do about them.

python -m potok.monitoring.alerts > deploy/prometheus/potok.rules.yml
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from potok.monitoring import families as f


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule: it fires once `expr` has held for some time. `runbook` says what to look at and what to do."""

    name: str
    expr: str
    held: str
    severity: Literal["critical", "warning"]
    summary: str
    runbook: str


ALERTS = (
    Alert(
        "PotokQueryFailed",
        f'{f.QUERY_STATE.name}{{state="failed"}} == 1',
        "1m",
        "critical",
        'Query "{{ $labels.query }}" has failed.',
        "The error is in the log of the process and in `potok describe QUERY`. The server retries a failed query at "
        "growing intervals; a program ends. Nothing is lost: fix the cause, then restart the program.",
    ),
    Alert(
        "PotokQueryWaiting",
        f'{f.QUERY_STATE.name}{{state="waiting"}} == 1',
        "5m",
        "warning",
        'Query "{{ $labels.query }}" waits for a server that does not respond.',
        "GET /readyz names what it waits for: Kafka, the state server or a sink. It continues by itself when that "
        "responds, and fails after the setting `retry_for`.",
    ),
    Alert(
        "PotokSourceLag",
        f"max by (query, topic) ({f.SOURCE_LAG_SECONDS.name}) > 300",
        "10m",
        "warning",
        'Query "{{ $labels.query }}" is {{ $value | humanizeDuration }} behind topic "{{ $labels.topic }}".',
        "Compare the rates of records in and out of its steps. If batches take longer than `target_batch`, add cores "
        "or shards (`potok state reshard`); `potok explain` shows steps that run as Python. If no batch commits, see "
        "PotokNoCommits.",
    ),
    Alert(
        "PotokTableStale",
        f"max by (query, table) ({f.FRESHNESS.name}) > 600",
        "10m",
        "warning",
        'Table "{{ $labels.table }}" lacks records that are {{ $value | humanizeDuration }} old.',
        "A query that feeds the table lags: see PotokSourceLag. Readers that must see a certain write pass its "
        "position with `Potok-Wait-For`.",
    ),
    Alert(
        "PotokNoCommits",
        f"(time() - {f.LAST_COMMIT.name} > 900) and on (query) (sum by (query) ({f.SOURCE_LAG.name}) > 0)",
        "5m",
        "critical",
        'Query "{{ $labels.query }}" has unread records and has not committed for {{ $value | humanizeDuration }}.',
        "A batch hangs or is repeated. Look at the Spark UI (`spark_ui = true`) for the running job; GET /livez "
        "reports a batch loop that does not move. Restarting the process is safe: the batch is repeated.",
    ),
    Alert(
        "PotokSlowBatches",
        "histogram_quantile(0.95, sum by (query, le) "
        f'(rate({f.BATCH_DURATION.name}_bucket{{phase="total"}}[10m]))) > 30',
        "10m",
        "warning",
        'Batches of query "{{ $labels.query }}" take {{ $value | humanizeDuration }}.',
        "The phase tells where: `execute` is computing (steps that run as Python, skewed keys), `deliver` is a slow "
        "sink, `commit` is the disk or the state server.",
    ),
    Alert(
        "PotokDeadLetters",
        f"sum by (query, reason) (increase({f.DEAD_LETTERS.name}[15m])) > 0",
        "0m",
        "warning",
        'Query "{{ $labels.query }}" set records aside: {{ $labels.reason }}.',
        "List them with `potok dead-letters list --query QUERY`, fix the program or the sender, then process them "
        "again with `potok dead-letters replay`.",
    ),
    Alert(
        "PotokLateRecords",
        f"sum by (query) (rate({f.LATE_RECORDS.name}[30m])) > 0.01 * "
        f'sum by (query) (rate({f.RECORDS.name}{{direction="in"}}[30m]))',
        "15m",
        "warning",
        'More than 1 % of the records of query "{{ $labels.query }}" are late.',
        "Raise the grace period of the window, or find the partition whose clock is ahead: "
        f"`{f.TIME_JUMPS.name}` counts records that advanced it by more than a day, and `max_jump` limits them.",
    ),
    Alert(
        "PotokWatermarkBehind",
        f"min by (query, step) ({f.WATERMARK_LAG.name}) > 3600",
        "30m",
        "warning",
        'The watermark of step "{{ $labels.step }}" is {{ $value | humanizeDuration }} behind.',
        "One partition holds it back: it lags, or it has old timestamps. A partition without records is left out after "
        "`idle_after`.",
    ),
    Alert(
        "PotokRestarts",
        f"sum by (query) (increase({f.RESTARTS.name}[30m])) > 3",
        "0m",
        "warning",
        'Query "{{ $labels.query }}" fails again and again.',
        "The label `cause` says where to look: log, state, sink or query. The first error after each restart is in the "
        "log of the process.",
    ),
    Alert(
        "PotokGatewayLoss",
        f"sum by (listener, reason) (increase({f.GATEWAY_LOST.name}[10m])) > 0",
        "0m",
        "critical",
        'Listener "{{ $labels.listener }}" loses records: {{ $labels.reason }}.',
        "malformed and too_large are the sender's. dropped_* and expired mean that the log was too slow or away: "
        "enlarge the buffer or fix the log. kernel_dropped: raise net.core.rmem_max and the listener's receive buffer.",
    ),
    Alert(
        "PotokGatewayDown",
        f"{f.GATEWAY_UP.name} == 0",
        "5m",
        "critical",
        'Listener "{{ $labels.listener }}" has a problem.',
        "GET /readyz and the log of the gateway have the message.",
    ),
    Alert(
        "PotokCaptureBehind",
        f"{f.CDC_LAG_SECONDS.name} > 300",
        "10m",
        "warning",
        'Capture "{{ $labels.capture }}" is {{ $value | humanizeDuration }} behind its database.',
        f'`{f.CDC_STATE.name}{{state="waiting"}}` means that the database or the log is away. Otherwise compare the '
        "rate of changes with that of the database.",
    ),
    Alert(
        "PotokSlotGrows",
        f"{f.CDC_SLOT_BYTES.name} > 10 * 1024 * 1024 * 1024",
        "10m",
        "critical",
        'The slot of capture "{{ $labels.capture }}" retains {{ $value | humanize1024 }}B on the database.',
        "The database keeps its log until the capture has read it, and its disk may fill up. Start the capture, or "
        "give it up with `potok cdc --drop NAME`; `max_slot_wal_keep_size` on the server is the last fence.",
    ),
    Alert(
        "PotokSlowReads",
        f"histogram_quantile(0.99, sum by (kind, le) (rate({f.PULL_SECONDS.name}_bucket[10m]))) > 1",
        "10m",
        "warning",
        "Reads of tables ({{ $labels.kind }}) take {{ $value | humanizeDuration }}.",
        "Reads by key take microseconds; scans take as long as the table is large. Look for pull queries without a "
        "key, and for a machine without free cores.",
    ),
    Alert(
        "PotokScrapeIncomplete",
        f"{f.SCRAPE_FAILURES.name} > 0",
        "10m",
        "warning",
        "A process cannot collect some of its metrics.",
        "Its log or its state server does not respond; the log of the process says which at level INFO.",
    ),
)


def rules() -> str:
    """Return the rules as YAML, for `rule_files` of prometheus.yml."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Generated by python -m potok.monitoring.alerts; do not edit."
    yield "groups:"
    yield "  - name: potok"
    yield "    rules:"
    for alert in ALERTS:
        yield f"      - alert: {alert.name}"
        yield f"        expr: {json.dumps(alert.expr)}"
        yield f"        for: {alert.held}"
        yield "        labels:"
        yield f"          severity: {alert.severity}"
        yield "        annotations:"
        yield f"          summary: {json.dumps(alert.summary)}"
        yield f"          runbook: {json.dumps(alert.runbook)}"


if __name__ == "__main__":
    sys.stdout.write(rules())
