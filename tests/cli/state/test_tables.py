from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cli.shop import HOUR, fill, leave_a_run, write_program
from potok.cli.state.tables import any_case, as_object, freshness, show_instant
from potok.dsl.builder import StreamsBuilder
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.queries.lock import is_held
from potok.runtime.queries.prepare import Prepared, prepare
from potok.settings import Settings
from potok.snapshots.rows.key_text import NotAKey, parse_key
from potok.snapshots.rows.layout import TableLayout
from potok.snapshots.table_view import WindowedKey


@pytest.fixture(scope="module")
def data(spark, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("shop")
    fill(directory / "data", write_program(directory / "program"))
    return str(directory / "data")


@pytest.fixture
def tables(potok, data: str):
    return lambda *words: potok("--broker", data, "tables", *words)


def test_every_table_is_listed(tables) -> None:
    assert tables("list", "--json").objects == [
        {"query": "shop", "table": "hourly_totals", "keys": 4, "window_ms": HOUR, "key_type": "string"},
        {"query": "shop", "table": "order_counts", "keys": 4, "window_ms": None, "key_type": "string"},
        {"query": "shop", "table": "sizes", "keys": 3, "window_ms": None, "key_type": "dynamic"},
    ]
    heading, first, *_ = tables("list").out.splitlines()
    assert heading.split() == ["query", "table", "keys", "windowed", "key", "type"]
    assert first.split() == ["shop", "hourly_totals", "4", "1h", "string"]


def test_a_row_is_found_by_its_key(tables) -> None:
    assert tables("get", "order_counts", "anna").out == "3\n"
    assert tables("get", "shop", "order_counts", "anna").out == "3\n"
    assert tables("get", "order_counts", "anna", "--query", "shop", "--json").objects == [{"key": "anna", "value": 3}]


def test_a_key_without_a_type_may_be_a_number(tables) -> None:
    assert tables("get", "sizes", "2").out == "1\n"


def test_windows_are_shown_with_readable_times(tables) -> None:
    rows = [line.split("  ") for line in tables("get", "hourly_totals", "anna").out.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells == [
        ["key", "start (UTC)", "end (UTC)", "value"],
        ["anna", "1970-01-01 01:00:00", "1970-01-01 02:00:00", "180.5"],
        ["anna", "1970-01-01 02:00:00", "1970-01-01 03:00:00", "1.0"],
    ]


@pytest.mark.parametrize("at", ["1970-01-01T02:59", "1970-01-01T03:59+01:00", str(2 * HOUR)])
def test_a_window_is_chosen_by_a_time_in_it(tables, at: str) -> None:
    assert tables("get", "hourly_totals", "anna", "--at", at, "--json").objects == [
        {"key": "anna", "start": 2 * HOUR, "end": 3 * HOUR, "value": 1.0}
    ]


def test_rows_come_in_the_order_of_their_keys(tables) -> None:
    rows = tables("scan", "order_counts", "--json").objects
    assert [(row["key"], row["value"]) for row in rows][:3] == [("anna", 3), ("bela", 1), ("carl", 1)]


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("--from", "b"), ["bela", "carl", "late\x1b[31m"]),
        (("--to", "bela"), ["anna"]),
        (("--from", "anna", "--to", "carl"), ["anna", "bela"]),
        (("--limit", "2"), ["anna", "bela"]),
        (("--from", "x"), []),
    ],
)
def test_a_scan_is_narrowed(tables, words: tuple[str, ...], keys: list[str]) -> None:
    assert [row["key"] for row in tables("scan", "order_counts", *words, "--json").objects] == keys


def test_a_scan_says_that_there_is_more(tables) -> None:
    assert "there are more" in tables("scan", "order_counts", "--limit", "2").err
    assert tables("scan", "order_counts").err == ""


def test_a_key_never_steers_the_terminal(tables) -> None:
    assert "\x1b" not in tables("scan", "order_counts").out


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("get", "order_counts", "nobody"), 'table "order_counts" has no row for "nobody"', "tables scan"),
        (("get", "hourly_totals", "anna", "--at", "0"), "in the window at 0", "tables scan"),
        (("get", "order_counts", "anna", "--at", "0"), 'table "order_counts" has no windows', "omit --at"),
        (("get", "order_count", "anna"), 'query "shop" has no table "order_count"', 'did you mean "order_counts"?'),
        (("get", "shopp", "order_counts", "anna"), 'there is no query "shopp"', "there are: shop"),
        (("scan", "sizes", "--query", "nosuch"), 'there is no query "nosuch"', "there are: shop"),
    ],
)
def test_what_is_not_there_is_named(tables, words: tuple[str, ...], message: str, hint: str) -> None:
    result = tables(*words)
    assert result.code == 1
    assert message in result.err and hint in result.err


@pytest.mark.parametrize("words", [("get", "anna"), ("get", "a", "b", "c", "d"), ("get", "t", "k", "--at", "noon")])
def test_invalid_arguments_exit_with_2(tables, words: tuple[str, ...]) -> None:
    assert tables(*words).code == 2


def test_spark_is_not_needed(data: str) -> None:
    program = (
        "import sys\nfrom potok.cli.main import app\n"
        f"try:\n    app(['--broker', {data!r}, 'tables', 'scan', 'order_counts'])\nexcept SystemExit:\n    pass\n"
        "print('pyspark' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "anna" in done.stdout
    assert done.stderr.strip() == "False"


def test_a_log_without_queries_says_so(potok, tmp_path: Path) -> None:
    open_broker(tmp_path / "data").close()
    assert (potok("tables", "list").out, potok("tables", "list").code) == ("", 0)
    assert "no query has run here yet" in potok("tables", "scan", "x").err


def test_of_several_queries_the_one_that_keeps_the_table_is_meant(potok, tmp_path: Path) -> None:
    text = "from potok import StreamsBuilder\nbuilder = StreamsBuilder({!r})\nbuilder.stream('a').count(name={!r})\n"
    text = text.replace("builder.stream('a')", "builder.stream('a').group_by_key()")
    for query, table in (("one", "shared"), ("two", "shared"), ("three", "own")):
        leave_a_run(tmp_path / "data", write_program(tmp_path / query, text.format(query, table)))
    assert potok("tables", "scan", "own").code == 0
    assert "name one with --query: one, two" in potok("tables", "scan", "shared").err
    assert "name one with --query: one, two" in potok("tables", "get", "Shared", "k").err
    assert "name one: one, three, two" in potok("offsets", "show").err
    nobody = potok("tables", "scan", "shard").err
    assert 'no query has a table "shard"' in nobody and "did you mean shared?" in nobody
    assert potok("tables", "scan", "shared", "--query", "two").code == 0


@pytest.mark.parametrize("words", [("Order_Counts",), ("SHOP", "ORDER_COUNTS")])
def test_names_are_found_in_any_case(tables, words: tuple[str, ...]) -> None:
    assert tables("get", *words, "anna").out == "3\n"
    assert tables("scan", words[-1], "--query", "Shop").code == 0


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("totals", ["TOTALS"], "TOTALS"),
        ("totals", ["TOTALS", "totals"], "totals"),
        ("Totals", ["TOTALS", "totals"], "TOTALS"),
        ("TOTALs", ["Totals", "totals"], ""),
        ("Totals", ["totals"], "totals"),
        ("total", ["totals"], ""),
    ],
)
def test_the_exact_name_has_priority_over_the_sql_name(name: str, known: list[str], found: str) -> None:
    assert any_case(name, known) == found


@pytest.mark.parametrize(
    ("key_type", "word", "keys"),
    [
        ("string", "5", ["5"]),
        ("bigint", "5", [5]),
        ("double", "2.5", [2.5]),
        ("boolean", "true", [True]),
        ("binary", "0xff00", [b"\xff\x00"]),
        ("binary", "abc", [b"abc"]),
        ("array<bigint>", "[1, 2]", [[1, 2]]),
        ("dynamic", "5", [5, "5"]),
        ("dynamic", "anna", ["anna"]),
    ],
)
def test_a_key_argument_is_parsed_by_the_type_of_the_key(key_type: str, word: str, keys: list[object]) -> None:
    assert parse_key(TableLayout("t", key_type, 0, 0, "objects", "value"), word) == keys


def test_a_key_argument_of_another_type_is_refused() -> None:
    with pytest.raises(NotAKey, match='"anna" is not a key of table "t"'):
        parse_key(TableLayout("t", "bigint", 0, 0, "objects", "value"), "anna")


@pytest.mark.parametrize(
    ("key", "value", "rendered"),
    [
        ("k", {"at": date(2026, 1, 31), "price": Decimal("1.50")}, {"at": "2026-01-31", "price": "1.50"}),
        ("k", b"\xff", "/w=="),
        ("k", 1 << 80, 1 << 80),
        ("k", [1 << 80], f"[{1 << 80}]"),
    ],
)
def test_a_row_is_plain_data(key: object, value: object, rendered: object) -> None:
    assert as_object(key, value) == {"key": key, "value": rendered}
    assert as_object(WindowedKey(key, 1, 2), value) == {"key": key, "start": 1, "end": 2, "value": rendered}


@pytest.mark.parametrize(
    ("ms", "rendered"),
    [(0, "1970-01-01 00:00:00"), (1, "1970-01-01 00:00:00.001"), (1 << 62, str(1 << 62))],
)
def test_a_time_is_shown_if_it_is_one(ms: int, rendered: str) -> None:
    assert show_instant(ms) == rendered


def builder() -> StreamsBuilder:
    made = StreamsBuilder("shop")
    made.stream("orders").group_by_key().count(name="counts")
    return made


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def query(log: Broker) -> Iterator[Prepared]:
    """A query that holds its lock and has run no batch."""
    prepared = prepare(builder(), log, Settings(shards=1))
    yield prepared
    prepared.release()


def send(log: Broker, count: int) -> None:
    log.append("orders", [LogRecord(b"anna", b"1") for _ in range(count)])


def write_down(log: Broker, **changes: Any) -> None:
    found = json.loads(log.get_metadata("query/shop/progress") or b"")
    log.set_metadata({"query/shop/progress": json.dumps(found | changes).encode()})


def test_a_query_that_never_ran_has_no_lag(log: Broker) -> None:
    assert freshness(log, "shop") == ""


def test_current_tables_report_no_lag(log: Broker, query: Prepared) -> None:
    assert freshness(log, "shop") == ""
    query.release()
    assert freshness(log, "shop") == ""


def test_a_query_that_is_starting_says_what_is_missing(log: Broker, query: Prepared) -> None:
    send(log, 3)
    assert freshness(log, "shop") == 'query "shop" is starting, 3 records are not in its tables yet'


def test_a_running_query_reports_its_lag(log: Broker, query: Prepared) -> None:
    write_down(log, state="running")
    send(log, 1)
    assert freshness(log, "shop") == 'query "shop" is running, 1 record is not in its tables yet'


def test_a_query_that_does_not_run_says_so(log: Broker, query: Prepared) -> None:
    write_down(log, state="running")
    query.release()
    send(log, 1)
    text = freshness(log, "shop")
    assert text == 'query "shop" is not running, 1 record is not in its tables yet: potok run PROGRAM starts it'


def test_a_query_that_failed_says_why(log: Broker, query: Prepared) -> None:
    query.release()
    write_down(log, state="failed", error="the disk is full\n  hint: make room")
    send(log, 1)
    assert freshness(log, "shop").endswith(": the disk is full")


def test_a_lock_is_held_as_long_as_its_process_says_so(log: Broker, query: Prepared) -> None:
    assert is_held(query.directory)
    query.release()
    assert not is_held(query.directory)
    assert not is_held(query.directory / "nowhere")
    (query.directory / "lock").write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    assert not is_held(query.directory), "a killed process left it behind, and its number is taken again"
    (query.directory / "lock").write_text("process 1 on another.machine\n")
    assert is_held(query.directory)


def test_tables_get_says_on_stderr_that_the_query_is_behind(potok, log: Broker, query: Prepared) -> None:
    send(log, 2)
    result = potok("tables", "get", "counts", "anna")
    assert result.code == 1
    assert 'query "shop" is starting, 2 records are not in its tables yet' in result.err
    assert 'table "counts" has no row for "anna"' in result.err
    assert "is starting" in potok("tables", "scan", "counts").err
    assert "is starting" in potok("tables", "list").err


def test_a_row_is_read_once_the_table_includes_a_write(tables) -> None:
    assert tables("get", "order_counts", "anna", "--wait-for", "orders:0:1").out == "3\n"
    late = tables("scan", "order_counts", "--wait-for", "orders:0:1000", "--wait", "0 seconds")
    assert (late.code, "has reached orders:0:6, not orders:0:1000" in late.err) == (1, True)
    bad = tables("get", "order_counts", "anna", "--wait-for", "x")
    assert (bad.code, '"x" is not a position' in bad.err) == (1, True)
