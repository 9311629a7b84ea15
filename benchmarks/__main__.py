"""`make bench`: all rows of the table, in one go.

Each side of a row runs in processes of its own, in turn with the other, on an otherwise quiet machine. A row is a ratio
of the middle figures; `bar` is what we hold ourselves to.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from benchmarks import (
    aggregates,
    algebra,
    app_page,
    cdc,
    dataframes,
    failures,
    faust_kill,
    faust_rate,
    foundation,
    gateway,
    guarantees,
    kafka,
    latency,
    loads,
    log,
    object_state,
    operate,
    patterns,
    sagas,
    serving,
    shared,
    sql,
    startup,
    state,
)
from benchmarks.bench import Bench, Row, console

ROWS: dict[str, Callable[[Bench], Row]] = {
    "typed": foundation.typed,
    "dynamic": foundation.dynamic,
    "branches": foundation.branches,
    "small": foundation.small_batches,
    "small_ms": foundation.small_batch,
    "state": foundation.large_state,
    "memory": foundation.memory,
    "object_state": object_state.large,
    "object_state_small": object_state.small,
    "object_state_restore": object_state.restore,
    "cassandra_large": state.large_postgres,
    "cassandra_small": state.small_postgres,
    "cassandra_redis": state.small_redis,
    "tumbling": algebra.tumbling,
    "hopping": algebra.hopping,
    "session": algebra.session,
    "stream_join": algebra.stream_join,
    "table_join": algebra.table_join,
    "chain_one_key": algebra.chain_one_key,
    "chain_three_keys": algebra.chain_three_keys,
    "failing_keys": failures.failing_keys,
    "at_least_once": guarantees.at_least_once,
    "at_most_once": guarantees.at_most_once,
    "kafka": kafka.by_hand,
    "kafka_exactly_once": kafka.exactly_once,
    "kafka_at_least_once": kafka.at_least_once,
    "kafka_guarantees": kafka.guarantees,
    "log_append": log.append,
    "log_read": log.read,
    "latency_p50": latency.median,
    "latency_p99": latency.slowest,
    "latency_embedded": latency.embedded,
    "start": startup.first_batch,
    "restart": startup.restart,
    "idle": startup.idle,
    "sql_ctas": sql.ctas,
    "sql_plan": sql.plan,
    "shared": shared.together,
    "shared_idle": shared.idle,
    "pull_p50": serving.median,
    "pull_p99": serving.slowest,
    "pull_rate": serving.rate,
    "push_p99": serving.push,
    "app_page": app_page.slowest,
    "patterns": patterns.fraud,
    "patterns_rate": patterns.fraud_rate,
    "patterns_open": patterns.open_matches,
    "command_p50": aggregates.median,
    "command_p99": aggregates.slowest,
    "command_rate": aggregates.rate,
    "saga_hops": sagas.hops,
    "saga_list": sagas.listing,
    "saga_get": sagas.getting,
    "metrics_scrape": operate.scrape,
    "metrics_small": operate.metrics_small,
    "metrics_large": operate.metrics_large,
    "traces_small": operate.traces_small,
    "traces_large": operate.traces_large,
    "webhook_rate": gateway.webhook_rate,
    "webhook_p99": gateway.webhook_p99,
    "datagrams": gateway.datagrams,
    "metrics": gateway.metrics,
    "rabbitmq": gateway.rabbitmq,
    "cdc_stream": cdc.stream,
    "cdc_snapshot": cdc.snapshot,
    "cdc_stream_mariadb": cdc.stream_mariadb,
    "cdc_snapshot_mariadb": cdc.snapshot_mariadb,
    "cdc_stream_debezium": cdc.stream_debezium,
    "cdc_snapshot_debezium": cdc.snapshot_debezium,
    "dataframe_read": dataframes.read_table,
    "hot_key": loads.hot_key,
    "large_values": loads.large_values,
    "large_values_memory": loads.large_values_memory,
    "many_keys": loads.many_keys,
    "many_keys_memory": loads.many_keys_memory,
    "steady": loads.steady,
    "partitions_plan": loads.partitions_plan,
    "partitions_idle": loads.partitions_idle,
    "queries_start": loads.queries_start,
    "queries_batch": loads.queries_batch,
    "faust_one": faust_rate.one,
    "faust_spread": faust_rate.spread,
    "faust_kill": faust_kill.kill,
}


def show(rows: list[Row]) -> None:
    table = Table(title="Potok against hand-written Structured Streaming")
    for name in ("what", "Potok", "other", "ratio", "tries", "bar", ""):
        table.add_column(name, justify="left" if name in ("what", "") else "right")
    for row in rows:
        mark = "[green]held[/]" if row.held else "[red]missed[/]"
        numbers = (f"{row.potok:,.0f} {row.unit}", f"{row.other:,.0f} {row.unit}", f"{row.ratio:.2f}x")
        tries = " ".join(f"{ratio:.2f}" for ratio in row.tries)
        bar = f"{'<=' if row.smaller_is_better else '>='} {row.bar}x"
        table.add_row(row.what, *numbers, tries, bar, mark)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure Potok against what a user would write by hand.")
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--batch", type=int, default=1_000_000, help="records per batch, the same on both sides")
    parser.add_argument("--repeat", type=int, default=3, help="how often each side of a row runs")
    parser.add_argument("--only", choices=sorted(ROWS), action="append")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/latest.json"))
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="potok-bench-"))
    rows: list[Row] = []
    try:
        bench = Bench(directory, options.records, options.batch, options.repeat)
        for name in options.only or ROWS:
            rows.append(ROWS[name](bench))
            show(rows)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "system": platform.platform()}
    results = [{**asdict(row), "ratio": row.ratio, "held": row.held} for row in rows]
    options.out.write_text(json.dumps({"machine": machine, "rows": results}, indent=2))
    console.print(f"written to {options.out}")
    sys.exit(0 if all(row.held for row in rows) else 1)


if __name__ == "__main__":
    main()
