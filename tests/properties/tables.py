"""Random aggregates, tables, and what follows them."""

from __future__ import annotations

from tests.properties import functions as fn
from tests.properties.functions import Aggregator
from tests.properties.programs import OPENED_WINDOWS, SESSIONS, SLIDING_WINDOWS, WINDOWS, Var, Writer
from tests.properties.steps import key_function
from tests.properties.table_algebra import lifetime, write_algebra


def write_aggregate(writer: Writer) -> None:
    upstream = writer.pick(writer.streams[-3:])
    grouped = "group_by_key()"
    if upstream.shape != "any" and writer.chance(70):
        grouped = f"group_by({key_function(writer, upstream)})"
    chosen = writer.pick(_aggregators(upstream))
    windowed = writer.chance(40)
    window = f".windowed_by({_window(writer, upstream, chosen)})" if windowed else ""
    final = windowed and writer.chance(30)
    if final:
        window += ".emit_final()"
    if chosen.ordered and not any(kind in window for kind in ("session", "sliding")):
        writer.program.one_partition(upstream.topics)
    writer.program.windowed |= windowed
    table = writer.new("table")
    call = chosen.text.replace("NAME", f'name="{table}"')
    writer.line(f"{table} = {upstream.name}.{grouped}{window}.{call}")
    writer.used.add(upstream.name)
    monotone = call.startswith("count(") and not windowed
    _write_table_steps(writer, table, chosen.result, monotone)
    if final:
        _write_again(writer, table)


def _write_again(writer: Writer, table: str) -> None:
    """Each result comes once, so the windows behind are promised too, and nothing is late there without a grace."""
    finals, between, counts = writer.new("s"), writer.new("between"), writer.new("table")
    writer.line(f'{finals} = {table}.to_stream().select_key(lambda k, v: "all")')
    ways = ["", f'.ordered(seconds(3), name="{between}")', f'.left_join({finals}, within=seconds(3), name="{between}")']
    way, window = writer.pick(ways), writer.pick([*WINDOWS, *SESSIONS, *SLIDING_WINDOWS])
    final = ".emit_final()" if writer.chance(30) else ""
    writer.line(f'{counts} = {finals}{way}.group_by_key().windowed_by({window}){final}.count(name="{counts}")')
    writer.line(f'{counts}.filter(lambda v: v, name="{counts}-again")')


def _window(writer: Writer, upstream: Var, chosen: Aggregator) -> str:
    """Windows that follow the records sort them by time. Which of them fail in sliding windows must not depend on those
    before them."""
    windows = [*WINDOWS, *SESSIONS]
    if upstream.shape != "row" or not chosen.text.startswith("reduce"):
        windows += SLIDING_WINDOWS
    if upstream.shape == "row":
        windows += OPENED_WINDOWS
    return writer.pick(windows)


def _aggregators(upstream: Var) -> list[Aggregator]:
    by_shape = {"row": fn.ROW_AGGREGATORS, "number": fn.NUMBER_AGGREGATORS, "any": fn.ANY_AGGREGATORS}
    ordered = len(upstream.topics) == 1 and not upstream.ties
    return [
        aggregator
        for aggregator in by_shape[upstream.shape]
        if (ordered or not aggregator.ordered)
        and (upstream.typed or not aggregator.typed)
        and not (upstream.ties and aggregator.text.startswith(("latest", "earliest")))
    ]


def write_to_table(writer: Writer) -> None:
    """The latest of each key. By position it is determined only if the records of a key are in one partition."""
    upstream = writer.pick(writer.streams[-3:])
    if upstream.ties or (len(upstream.topics) > 1 and not upstream.rekeyed):
        write_aggregate(writer)
        return
    if not upstream.rekeyed:
        writer.program.by_key(upstream.topics)
    table = writer.new("table")
    writer.line(f'{table} = {upstream.name}.to_table({lifetime(writer)}name="{table}")')
    writer.used.add(upstream.name)
    _write_table_steps(writer, table, "any", monotone=False)


def write_table_source(writer: Writer) -> None:
    if len(writer.program.topics) < 3:
        _write_table_steps(writer, writer.source("table"), "any", monotone=False)
    else:
        write_aggregate(writer)


def _write_table_steps(writer: Writer, table: str, result: str, monotone: bool) -> None:
    """Filter and map the rows, then write the changes, or keep them as another table."""
    for _ in range(writer.pick([0, 0, 1, 2])):
        made = writer.new("table")
        name = f', name="{made}"' if writer.chance(60) else ""
        verb = writer.pick(["filter", "filter_not", "map_values"])
        if verb == "map_values":
            text, result = writer.pick(fn.TABLE_MAPPERS[result])
        else:
            text = writer.pick(fn.TABLE_PREDICATES[result])
        if verb == "filter_not" and result != "number":
            text = "lambda v: v is None"
        writer.line(f"{made} = {table}.{verb}({text}{name})")
        table, monotone = made, False
    if writer.chance(40):
        write_algebra(writer, table, result)
    end = writer.pick(["", "to", "map_values", "to_table", "max"])
    if end == "to":
        writer.line(f'{table}.to_stream().to("{writer.new("changes-")}")')
    elif end == "map_values":
        # A delete must stay one: a row that came and went in one batch is never seen.
        mapped = 'map_values(lambda v: None if v is None else {"v": v})'
        writer.line(f'{table}.to_stream().{mapped}.to("{writer.new("changes-")}")')
    elif end == "to_table":
        writer.line(f'{table}.to_stream().to_table(name="{writer.new("copy")}")')
    elif end == "max" and monotone:
        # The greatest of counts that only grow is the same however many of their changes are seen.
        writer.line(f'{table}.to_stream().group_by(lambda k, v: "all").max(name="{writer.new("greatest")}")')
