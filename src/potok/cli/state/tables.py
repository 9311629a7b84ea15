"""`potok tables`: list, get and scan tables at the last committed batch, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import console, counted, note, print_json, print_table, show_bytes_of_record
from potok.clock import parse_epoch_ms
from potok.duration import show_ms
from potok.errors import PotokError, QueryError
from potok.sql.errors import closest

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.snapshots.tables import Tables


app = command_app(no_args_is_help=True, help="List and read the tables of queries.")

QueryOption = Annotated[
    str | None, typer.Option("--query", metavar="NAME", help="The query; optional if there is only one.")
]


NOT_YET = "potok run shop.py starts one; a program that was started just now takes a few seconds"


class WhichQuery(QueryError):
    """Several queries match, and none is named."""

    def __init__(self, found: list[str], option: str) -> None:
        how = f"name one with {option}" if option else "name one"
        super().__init__("several queries have run here", hint=f"{how}: {', '.join(found)}")


class NobodyKeeps(QueryError):
    """No query has the table."""

    def __init__(self, table: str, known: list[str]) -> None:
        super().__init__(f'no query has a table "{table}"', hint=closest(table, known) or "potok tables list")


class NoSuchRow(QueryError):
    """The key is not in the table."""

    def __init__(self, table: str, key: str, at: str | None) -> None:
        when = f" in the window at {at}" if at else ""
        super().__init__(
            f'table "{table}" has no row for "{key}"{when}', hint=f"potok tables scan {table} shows its rows"
        )


WaitFor = Annotated[
    str | None,
    typer.Option(metavar="POSITION", help="Wait until the table includes a write, such as orders:0:42."),
]
Wait = Annotated[str, typer.Option(metavar="DURATION", help="How long to wait for --wait-for.")]


@app.command("list")
def list_tables(
    context: typer.Context, query: QueryOption = None, broker: Broker = None, as_json: Json = False
) -> None:
    """Show all tables with their query, number of keys and key type."""
    from potok.snapshots.tables import known_queries

    with opened_log(context, broker) as log:
        queries = [chosen_query(log, query)] if query else known_queries(log)
        found = [row for name in queries for row in _tables_of(log, name)]
        for name in queries:
            report_freshness(log, name)
    if as_json:
        for row in found:
            print_json(row)
    elif not found:
        note("no tables; a topology creates them, for example with .count(name=...): potok run shop.py")
    else:
        rows = [(r["query"], r["table"], r["keys"], _window(r["window_ms"]), r["key_type"]) for r in found]
        print_table(("query", "table", "keys", "windowed", "key type"), rows)


@app.command()
def get(
    context: typer.Context,
    words: Annotated[
        list[str], typer.Argument(metavar="[QUERY] TABLE KEY", help="QUERY is required if there are several.")
    ],
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The window that contains this time: ISO 8601 (UTC) or milliseconds."),
    ] = None,
    query: QueryOption = None,
    wait_for: WaitFor = None,
    wait: Wait = "30 seconds",
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Print the value of a key; for a windowed table, the values of all its windows."""
    if len(words) not in (2, 3) or (query and len(words) == 3):
        raise typer.BadParameter("write [QUERY] TABLE KEY", param_hint="words")
    *first, table, key = words
    at_ms = None if at is None else _milliseconds(at)
    from potok.snapshots.table_search import rows_of_key

    with opened_log(context, broker) as log:
        tables, table = _opened(log, table, first[0] if first else query, wait_for, wait)
        windowed = tables[table].windowed
        if at_ms is not None and not windowed:
            raise QueryError(f'table "{table}" has no windows', hint="omit --at")
        rows = rows_of_key(tables, table, key, at_ms)
        report_freshness(log, tables.query)
    if not rows:
        raise NoSuchRow(table, key, at)
    if as_json:
        for row_key, value in rows:
            print_json(as_object(row_key, value))
    elif windowed:
        _print_rows(rows, windowed=True)
    else:
        console().print(_text(rows[0][1]), markup=False)


@app.command()
def scan(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="The table to read.")],
    query: QueryOption = None,
    low: Annotated[str | None, typer.Option("--from", metavar="KEY", help="Start with this key.")] = None,
    high: Annotated[str | None, typer.Option("--to", metavar="KEY", help="End before this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows.")] = 100,
    wait_for: WaitFor = None,
    wait: Wait = "30 seconds",
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Print the rows of a table in key order, at one committed batch."""
    from potok.snapshots.table_search import Search, search_table

    with opened_log(context, broker) as log:
        tables, table = _opened(log, table, query, wait_for, wait)
        windowed = tables[table].windowed
        found = search_table(tables, table, Search(low=low, high=high), limit)
        report_freshness(log, tables.query)
    if as_json:
        for key, value in found.rows:
            print_json(as_object(key, value))
        return
    if not found.rows:
        note("no rows")
        return
    _print_rows(found.rows, windowed=windowed)
    if found.more:
        note(f"there are more rows; use --limit {limit * 10}, or --from and --to")


def chosen_query(log: Log, given: str | None, table: str = "", *, option: str = "--query") -> str:
    """Return the given query, the only query, or the only one with `table`.

    `option` is the option that names a query, "" where it is an argument.
    """
    from potok.snapshots.tables import NoSuchQuery, known_queries

    known = known_queries(log)
    if given is None and len(known) > 1 and table:
        known = _keeping(log, known, table)
    if given is None and len(known) > 1:
        raise WhichQuery(known, option)
    name = any_case(given, known) or given if given else (known[0] if known else "")
    if name not in known:
        raise NoSuchQuery(name, known) if name else QueryError("no query has run here yet", hint=NOT_YET)
    return name


def _keeping(log: Log, queries: list[str], table: str) -> list[str]:
    """Return the queries that have a table of this name or, if none does, of this name in another case."""
    from potok.snapshots.tables import Tables

    kept = {query: list(Tables(log, query)) for query in queries}
    found = [query for query, names in kept.items() if table in names]
    found = found or [query for query, names in kept.items() if any_case(table, names)]
    if not found:
        raise NobodyKeeps(table, sorted({name for names in kept.values() for name in names}))
    return found


def any_case(name: str, known: Iterable[str]) -> str:
    """Match a name exactly, in upper case as SQL stores it, or as the only one in any case; "" if nothing matches."""
    names = list(known)
    alike = [found for found in names if found.casefold() == name.casefold()]
    return next((found for found in (name, name.upper()) if found in names), alike[0] if len(alike) == 1 else "")


def _opened(log: Log, table: str, query: str | None, wait_for: str | None, wait: str) -> tuple[Tables, str]:
    """Return the tables of a query once they include a position, and the exact name of the requested one."""
    from potok.snapshots.tables import Tables

    tables = Tables(log, chosen_query(log, query, table))
    if wait_for is not None:
        tables.wait_for(wait_for, wait)
    return tables, any_case(table, tables) or table


def as_object(key: Any, value: Any) -> dict[str, Any]:
    """Return a row as plain data; a windowed key as `key`, `start` and `end` in milliseconds."""
    from potok.snapshots.table_view import WindowedKey

    if isinstance(key, WindowedKey):
        return {"key": _plain(key.key), "start": key.start_ms, "end": key.end_ms, "value": _plain(value)}
    return {"key": _plain(key), "value": _plain(value)}


def _plain(value: Any) -> Any:
    """Return a value as JSON data; values without a JSON form as text."""
    from potok.records.formats.json.objects import dumps

    try:
        return value if isinstance(value, int) else json.loads(dumps(value))
    except TypeError:
        return repr(value)


def show_instant(ms: int) -> str:
    """Render a timestamp; one that is out of range as a number."""
    try:
        rendered = datetime.fromtimestamp(ms / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):
        return str(ms)
    return rendered.removesuffix(".000")


def _tables_of(log: Log, query: str) -> Iterator[dict[str, Any]]:
    from potok.snapshots.progress import read_progress
    from potok.snapshots.tables import Tables

    tables = Tables(log, query)
    progress = read_progress(log, query)
    counted = progress.state_keys if progress else {}
    for name, layout in sorted(tables.layouts().items()):
        # A query without a batch has no counts.
        keys = counted[name] if name in counted else len(tables[name])
        yield {
            "query": query,
            "table": name,
            "keys": keys,
            "window_ms": layout.window_ms if layout.window else None,
            "key_type": layout.key,
        }


def _print_rows(rows: list[tuple[Any, Any]], *, windowed: bool) -> None:
    if windowed:
        headings: tuple[str, ...] = ("key", "start (UTC)", "end (UTC)", "value")
        cells = [(_text(k.key), show_instant(k.start_ms), show_instant(k.end_ms), _text(value)) for k, value in rows]
        print_table(headings, cells)
    else:
        print_table(("key", "value"), [(_text(key), _text(value)) for key, value in rows])


def _text(value: Any) -> str:
    """Render a value on one line, as JSON unless it is text."""
    if isinstance(value, bytes):
        return show_bytes_of_record(value)
    plain = _plain(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return show_bytes_of_record(text.encode())


def _window(window_ms: int | None) -> str:
    return "no" if window_ms is None else show_ms(window_ms) if window_ms else "sessions"


def _milliseconds(text: str) -> int:
    try:
        return parse_epoch_ms(text)
    except ValueError as error:
        message = f'"{text}" is not a time; write 2026-01-31T12:00 or milliseconds since 1970'
        raise typer.BadParameter(message, param_hint="--at") from error


def report_freshness(log: Log, query: str) -> None:
    """Print to stderr why a table may not be up to date; nothing if it is."""
    text = freshness(log, query)
    if text:
        note(text)


def freshness(log: Log, query: str) -> str:
    from potok.runtime.queries.directory import query_directory
    from potok.runtime.queries.lock import is_held
    from potok.snapshots.ledger_view import read_entry
    from potok.snapshots.progress import read_progress

    entry, progress = read_entry(log, query), read_progress(log, query)
    if entry is None or progress is None:
        return ""
    try:
        lag = entry.offsets.pending(log.end_offsets_of(list(entry.offsets.topics)))
    except PotokError:
        return ""  # a topic of the query was deleted
    if not lag:
        return ""
    waiting = f"{counted(lag, 'record')} {'is' if lag == 1 else 'are'} not in its tables yet"
    if progress.state == "failed":
        return f'query "{query}" has failed, {waiting}: {progress.error.splitlines()[0] if progress.error else ""}'
    if not is_held(query_directory(log, query)):
        return f'query "{query}" is not running, {waiting}: potok run PROGRAM starts it'
    state = "is starting" if progress.state == "starting" else "is running"
    return f'query "{query}" {state}, {waiting}'
