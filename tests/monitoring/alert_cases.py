"""When each alert is silent and when it fires, for `promtool test rules`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from potok.monitoring.alerts import ALERTS


class Case(NamedTuple):
    """Series of one value per minute; the alert is silent at `quiet` and fires at `loud` with these labels."""

    series: Mapping[str, str]
    quiet: str
    loud: str
    labels: Mapping[str, str]
    summary: str


CASES = {
    "PotokQueryFailed": Case(
        {
            'potok_query_state{query="q",state="failed"}': "0x5 1x20",
            'potok_query_state{query="q",state="running"}': "1x5 0x20",
        },
        "4m",
        "8m",
        {"query": "q", "state": "failed"},
        'Query "q" has failed.',
    ),
    "PotokQueryWaiting": Case(
        {'potok_query_state{query="q",state="waiting"}': "0x5 1x20"},
        "9m",
        "13m",
        {"query": "q", "state": "waiting"},
        'Query "q" waits for a server that does not respond.',
    ),
    "PotokSourceLag": Case(
        {'potok_source_lag_seconds{query="q",topic="t"}': "0x5 400x30"},
        "10m",
        "20m",
        {"query": "q", "topic": "t"},
        'Query "q" is 6m 40s behind topic "t".',
    ),
    "PotokTableStale": Case(
        {'potok_table_freshness_seconds{query="q",table="t"}': "0x5 900x30"},
        "10m",
        "20m",
        {"query": "q", "table": "t"},
        'Table "t" lacks records that are 15m 0s old.',
    ),
    "PotokNoCommits": Case(
        {
            'potok_last_commit_timestamp_seconds{query="q"}': "0x60",
            'potok_last_commit_timestamp_seconds{query="idle"}': "0x60",
            'potok_source_lag_records{query="q",topic="t"}': "7x60",
            'potok_source_lag_records{query="idle",topic="t"}': "0x60",
        },
        "14m",
        "30m",
        {"query": "q"},
        'Query "q" has unread records and has not committed for 30m 0s.',
    ),
    "PotokSlowBatches": Case(
        {
            'potok_batch_duration_seconds_bucket{query="q",phase="total",le="10.0"}': "0x60",
            'potok_batch_duration_seconds_bucket{query="q",phase="total",le="120.0"}': "0+6x60",
            'potok_batch_duration_seconds_bucket{query="q",phase="total",le="+Inf"}': "0+6x60",
        },
        "2m",
        "30m",
        {"query": "q"},
        'Batches of query "q" take 1m 54s.',
    ),
    "PotokDeadLetters": Case(
        {
            'potok_dead_letters_total{query="q",reason="decode"}': "5x10 6x20",
            'potok_dead_letters_total{query="q",reason="late"}': "5x30",
        },
        "9m",
        "14m",
        {"query": "q", "reason": "decode"},
        'Query "q" set records aside: decode.',
    ),
    "PotokLateRecords": Case(
        {
            'potok_late_records_total{query="q",step="s"}': "0+5x90",
            'potok_late_records_total{query="well",step="s"}': "0+1x90",
            'potok_records_total{query="q",direction="in"}': "0+200x90",
            'potok_records_total{query="well",direction="in"}': "0+200x90",
        },
        "5m",
        "60m",
        {"query": "q"},
        'More than 1 % of the records of query "q" are late.',
    ),
    "PotokWatermarkBehind": Case(
        {'potok_watermark_lag_seconds{query="q",step="s"}': "60x5 7200x60"},
        "20m",
        "50m",
        {"query": "q", "step": "s"},
        'The watermark of step "s" is 2h 0m 0s behind.',
    ),
    "PotokRestarts": Case(
        {
            'potok_restarts_total{query="q",cause="sink"}': "0x10 1 2 3 4 5x30",
            'potok_restarts_total{query="once",cause="sink"}': "0x10 1x30",
        },
        "10m",
        "20m",
        {"query": "q"},
        'Query "q" fails again and again.',
    ),
    "PotokGatewayLoss": Case(
        {
            'potok_gateway_lost_total{listener="l",reason="expired"}': "0x10 3x30",
            'potok_gateway_lost_total{listener="l",reason="malformed"}': "2x40",
        },
        "9m",
        "13m",
        {"listener": "l", "reason": "expired"},
        'Listener "l" loses records: expired.',
    ),
    "PotokGatewayDown": Case(
        {'potok_gateway_up{listener="l"}': "1x5 0x20", 'potok_gateway_up{listener="well"}': "1x25"},
        "9m",
        "13m",
        {"listener": "l"},
        'Listener "l" has a problem.',
    ),
    "PotokCaptureBehind": Case(
        {'potok_cdc_lag_seconds{capture="c"}': "0x5 400x30"},
        "10m",
        "20m",
        {"capture": "c"},
        'Capture "c" is 6m 40s behind its database.',
    ),
    "PotokSlotGrows": Case(
        {'potok_cdc_slot_retained_bytes{capture="c"}': "1000x5 20000000000x30"},
        "10m",
        "20m",
        {"capture": "c"},
        'The slot of capture "c" retains 18.63GiB on the database.',
    ),
    "PotokSlowReads": Case(
        {
            'potok_pull_query_seconds_bucket{kind="sql",le="1.0"}': "0x60",
            'potok_pull_query_seconds_bucket{kind="sql",le="5.0"}': "0+6x60",
            'potok_pull_query_seconds_bucket{kind="sql",le="+Inf"}': "0+6x60",
        },
        "2m",
        "30m",
        {"kind": "sql"},
        "Reads of tables (sql) take 4.96s.",
    ),
    "PotokScrapeIncomplete": Case(
        {"potok_scrape_failures": "0x5 1x30"},
        "10m",
        "20m",
        {},
        "A process cannot collect some of its metrics.",
    ),
}


def promtool_tests(rules: Path) -> str:
    """Return the cases in the form of promtool."""
    return "\n".join(_lines(rules)) + "\n"


def _lines(rules: Path) -> Iterator[str]:
    severities = {alert.name: alert.severity for alert in ALERTS}
    runbooks = {alert.name: alert.runbook for alert in ALERTS}
    yield f"rule_files: [{json.dumps(str(rules))}]"
    yield "evaluation_interval: 1m"
    yield "tests:"
    for name, case in CASES.items():
        yield "  - interval: 1m"
        yield "    input_series:"
        for series, values in case.series.items():
            yield f"      - {json.dumps({'series': series, 'values': values})}"
        yield "    alert_rule_test:"
        yield f"      - {json.dumps({'eval_time': case.quiet, 'alertname': name, 'exp_alerts': []})}"
        expected = {
            "exp_labels": {**case.labels, "severity": severities[name]},
            "exp_annotations": {"summary": case.summary, "runbook": runbooks[name]},
        }
        yield f"      - {json.dumps({'eval_time': case.loud, 'alertname': name, 'exp_alerts': [expected]})}"
