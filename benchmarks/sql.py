"""SQL against the same written in PySpark by hand."""

from __future__ import annotations

from benchmarks.bench import Bench, Row, speed
from benchmarks.foundation import inputs


def ctas(bench: Bench) -> Row:
    log, files = inputs(bench)
    return bench.at_least(
        "SQL: CREATE TABLE AS SELECT, count and sum",
        lambda: speed(bench.potok("ctas", log, bench.batch)),
        lambda: speed(bench.handwritten("ctas", files)),
        2.0,
    )
