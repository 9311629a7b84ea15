"""SQL against the same written in PySpark by hand; and how long a statement takes before anything runs."""

from __future__ import annotations

import statistics
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench, Row, speed
from benchmarks.foundation import inputs
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sql.errors import SqlError
from potok.sql.properties import NO_PROPERTIES
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.statements.catalog.catalog_state import EMPTY, CatalogState
from potok.statements.catalog.command_log import Command
from potok.statements.pull.pull import check_pull
from potok.statements.push.push import check_push
from potok.statements.session import CHANGES

CASES = Path(__file__).parents[1] / "tests" / "sql" / "cases"
PLAN_MS = 50.0
TRIES = 3


def ctas(bench: Bench) -> Row:
    log, files = inputs(bench)
    return bench.at_least(
        "SQL: CREATE TABLE AS SELECT, count and sum",
        lambda: speed(bench.potok("ctas", log, bench.batch)),
        lambda: speed(bench.handwritten("ctas", files)),
        2.0,
    )


def plan(bench: Bench) -> Row:
    """The statement of all scripts in the tests that takes longest to parse and to plan, in CPU time."""
    slowest, text = max(planned())
    what = f"SQL: parse and plan a statement, the slowest of all: {' '.join(text.split())[:40]}"
    return Row(what, slowest, PLAN_MS, "ms", 1.0, smaller_is_better=True)


def planned() -> Iterator[tuple[float, str]]:
    """Milliseconds for each statement, the middle of a few tries; a script ends where one is refused."""
    with tempfile.TemporaryDirectory() as directory:
        broker = EmbeddedBroker.shared(Path(directory))
        for script in _scripts():
            catalog_state = EMPTY
            try:
                for parsed in parse_script(script):
                    tries = [_one(parsed.text, catalog_state, broker) for _ in range(TRIES)]
                    catalog_state = tries[-1][1]
                    yield statistics.median(took for took, _ in tries), parsed.text
            except SqlError:
                continue
        broker.close()


def _scripts() -> Iterator[str]:
    for file in sorted(CASES.glob("*.toml")):
        document = tomllib.loads(file.read_text())
        for case in document["case"]:
            given = "".join(document["sources"][name] for name in case.get("given", []))
            asked = "".join(query["sql"] for query in case.get("queries", []))
            yield given + case["sql"] + asked


def _one(text: str, catalog_state: CatalogState, broker: EmbeddedBroker) -> tuple[float, CatalogState]:
    began = time.process_time()
    (parsed,) = parse_script(text)
    after, statement = catalog_state, parsed.statement
    if isinstance(statement, CHANGES):
        after = catalog_state.after(
            parsed, Command(len(catalog_state.queries), text, f"Q_{len(catalog_state.queries)}", {}), broker
        )
    elif isinstance(statement, ast.Query):
        if statement.query.emit is None:
            check_pull(catalog_state.catalog, statement.query, NO_PROPERTIES)
        else:
            check_push(catalog_state.catalog, statement.query, NO_PROPERTIES)
    return (time.process_time() - began) * 1_000, after
