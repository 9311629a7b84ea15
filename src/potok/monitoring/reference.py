"""Generate the reference page of the metrics and alerts.

python -m potok.monitoring.reference > docs/metrics.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from potok.monitoring.alerts import ALERTS
from potok.monitoring.families import SECTIONS
from potok.monitoring.family import Family

INTRODUCTION = """\
# Metrics

`GET /metrics` is served by `potok serve`, by `potok run --serve` and by the pages of a Faust-style program, next to
the other routes. Processes without an HTTP server of their own get one with `--metrics`:

```sh
potok run orders.py --metrics 9464
potok gateway gateway.toml --metrics 0.0.0.0:9464
potok cdc captures.toml --metrics 9464
python shop.py worker --metrics 9464
curl http://127.0.0.1:9464/metrics
```

The same port serves `/livez` and `/readyz`; see [Operating](operating.md). The format is that of Prometheus, or
OpenMetrics if the `Accept` header prefers it. On a server with tokens, `/metrics` requires the scope `read`
(`authorization` in `prometheus.yml`); `--metrics` requires none, because it serves nothing else: bind it to an address
that only Prometheus reaches.

All figures are those of the driver process, so there is one target per process, whatever the number of executors.
Counters of records count committed batches: an attempt that failed, or was repeated after a crash, counts once. They
are stored with the batch and continue after a restart. Histograms, restarts and waits begin with the process.

Labels have as many values as the program declares queries, topics, steps and tables, never one per key or message.

`deploy/prometheus/potok.rules.yml` has the [alerts](#alerts), and `deploy/grafana/potok.json` is a dashboard. Both are
generated from the same list as this page.
"""

EXPORTER = """\
## Lag for existing tools

`kafka_consumergroup_group_lag` and `kafka_consumergroup_group_lag_seconds` have the names and labels of
kafka-lag-exporter, so existing alerts match; the group is the name of the query, on the embedded log too. On Kafka,
a query also commits its offsets for the group of its name, every half second at most, so
`kafka-consumer-groups --describe --group QUERY`, Burrow and Kafka UIs show its lag. Nothing depends on these offsets:
where a query resumes is in its ledger.

The age of the oldest unread record is interpolated between the ends of the partition that the process has seen, as
kafka-lag-exporter does. For a record that was there before, its own timestamp is read once.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([INTRODUCTION, *_sections(), EXPORTER, *_alerts()])


def _sections() -> Iterator[str]:
    for title, families in SECTIONS.items():
        yield f"## {title}\n"
        yield "| name | type | labels | meaning | Kafka Streams | ksqlDB | Flink |"
        yield "|---|---|---|---|---|---|---|"
        yield from map(_row, families)
        yield ""


def _row(family: Family) -> str:
    elsewhere = family.elsewhere
    labels = ", ".join(f"`{label}`" for label in family.labels)
    others = " | ".join(name or "-" for name in (elsewhere.kafka_streams, elsewhere.ksqldb, elsewhere.flink))
    return f"| `{family.name}` | {family.kind} | {labels or '-'} | {family.help} | {others} |"


def _alerts() -> Iterator[str]:
    yield "## Alerts\n"
    for alert in ALERTS:
        yield f"### {alert.name}\n"
        yield f"{alert.severity.capitalize()}, after {alert.held}: `{alert.expr}`\n"
        yield f"{alert.runbook}\n"


if __name__ == "__main__":
    sys.stdout.write(page())
