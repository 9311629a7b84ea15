"""Tables of the metrics that a StatsD listener receives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from potok.dsl.builder import StreamsBuilder
from potok.dsl.table import Table
from potok.duration import Duration
from potok.errors import TopologyError
from potok.sources.datagrams.sketch import add, empty, summary
from potok.topology.nodes.windows import tumbling

METRIC = "type string, value double, rate double, relative boolean, member string"
PERCENTILES = (50.0, 75.0, 95.0, 98.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class StatsdTables:
    """The tables of metrics, by name; those of windows by name and window.

    `counters` (type `c`) has the sum of each window, `totals` (type `C`) the increase of an ever-growing number since
    its first value, `gauges` the present value. `timers` (types `ms` and `h`) has `count`, `sum`, `min`, `max`, `mean`
    and the percentiles of each window, as `p50` or `p99_9`. `sets` has the number of distinct members of each window.
    """

    counters: Table[Any, float]
    totals: Table[str, float]
    gauges: Table[str, float]
    timers: Table[Any, dict[str, float]]
    sets: Table[Any, int]


def statsd_tables(
    builder: StreamsBuilder,
    topic: str,
    *,
    window: Duration = "10 s",
    grace: Duration = "5 s",
    percentiles: Sequence[float] = PERCENTILES,
    name: str = "statsd",
) -> StatsdTables:
    """Build tables of the metrics in a topic that a StatsD listener fills.

    >>> builder = StreamsBuilder("metrics")
    >>> tables = statsd_tables(builder, "statsd", window="1 minute", percentiles=(50, 99))

    Sampled metrics count for as many as they represent: a counter with the rate 0.1 counts ten times. Percentiles are
    within 1 % of the exact ones.

    Args:
        builder: The program to add the tables to.
        topic: The topic of the listener.
        window: The length of a window. Windows are of the time when a metric arrived.
        grace: How long a window stays open for metrics that are behind.
        percentiles: Which percentiles a timer has.
        name: The tables are called `NAME_counters` and so on.
    """
    wrong = [each for each in percentiles if not 0 < each <= 100]
    if wrong:
        raise TopologyError(f"{wrong[0]} is not a percentile", hint="write numbers from 0 to 100, such as 99.9")
    listed = tuple(percentiles)
    metrics = builder.stream(topic, key=str, value=METRIC, name=f"{name}_metrics")
    windows = tumbling(window, grace=grace)

    def of(kind: str) -> Any:
        return metrics.filter(lambda v: v["type"] == kind, name=f"{name}_{kind}").group_by_key()

    timed = metrics.filter(lambda v: (v["type"] == "ms") | (v["type"] == "h"), name=f"{name}_timed").group_by_key()
    distribution = timed.windowed_by(windows).aggregate(empty, _add, name=f"{name}_distributions")
    totals = of("C").aggregate(_no_total, _increase, name=f"{name}_increases")
    return StatsdTables(
        counters=of("c").windowed_by(windows).sum(lambda v: v["value"] / v["rate"], name=f"{name}_counters"),
        totals=totals.map_values(lambda v: v["total"], name=f"{name}_totals"),
        gauges=of("g").aggregate(
            0.0, lambda v, gauge: gauge + v["value"] if v["relative"] else v["value"], name=f"{name}_gauges"
        ),
        timers=distribution.map_values(lambda v: summary(v, listed), name=f"{name}_timers"),
        sets=of("s").windowed_by(windows).count_distinct("member", name=f"{name}_sets"),
    )


def _add(metric: Any, sketch: dict[str, Any]) -> dict[str, Any]:
    return add(sketch, metric["value"], 1 / metric["rate"])


def _no_total() -> dict[str, Any]:
    return {"last": None, "total": 0.0}


def _increase(metric: Any, so_far: dict[str, Any]) -> dict[str, Any]:
    """Add the increase since the last value; a smaller value means that the sender began again at 0."""
    value, last = metric["value"], so_far["last"]
    if last is None:
        return {"last": value, "total": so_far["total"]}
    return {"last": value, "total": so_far["total"] + (value - last if value >= last else value)}
