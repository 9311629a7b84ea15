"""Random groups and joins of tables. Their functions never raise: how often they would depends on the batches."""

from __future__ import annotations

from tests.properties import functions as fn
from tests.properties.programs import Writer

NUMBER_GROUPS = ["count(NAME)", "sum(NAME)", "avg(NAME)", "min(NAME)", "max(NAME)", "collect_list(NAME)"]
ANY_GROUPS = [
    "count(NAME)",
    "count_distinct(NAME)",
    "aggregate(0, lambda v, n: n + 1, lambda v, n: n - 1, NAME)",
    "aggregate(list, lambda k, v, seen: [*seen, k], lambda k, v, seen: seen[1:], NAME)",
]
LIFETIMES = ["ttl=seconds(20)", "ttl=milliseconds(2500)", "history=seconds(30)", "history=seconds(5)"]


def lifetime(writer: Writer) -> str:
    """How long rows live, for some tables."""
    if not writer.chance(25):
        return ""
    writer.program.windowed = True
    return f"{writer.pick(LIFETIMES)}, "


def write_algebra(writer: Writer, table: str, result: str) -> None:
    """A table that is made of the rows of another, in groups or together with other rows."""
    choice = writer.pick(["group", "pairs", "join", "foreign"])
    if choice == "join":
        _join(writer, table, result)
    elif choice == "foreign" and not writer.program.windowed:
        _foreign(writer, table, result)
    else:
        _group(writer, table, result, pairs=choice == "pairs")


def _group(writer: Writer, table: str, result: str, *, pairs: bool) -> None:
    group = writer.pick([*fn.TABLE_PREDICATES[result], 'lambda k, v: "k1" if k == "k1" else "other"'])
    if pairs:
        group = 'lambda k, v: ("one" if k == "k1" else "more", v), pairs=True'
    groups = ANY_GROUPS + (NUMBER_GROUPS if result != "any" else [])
    _end(writer, f"{table}.group_by({group}).{_named(writer, writer.pick(groups))}")


def _join(writer: Writer, table: str, result: str) -> None:
    if writer.chance(50):
        other = f"{table}.filter({writer.pick(fn.TABLE_PREDICATES[result])})"
    else:
        other = f"{table}.map_values({writer.pick(fn.TABLE_MAPPERS[result])[0]})"
    sides = [table, other] if writer.chance(50) else [other, table]
    verb = writer.pick(["join", "left_join", "outer_join"])
    joiner = writer.pick(["", "lambda a, b: [a, b], ", "lambda k, a, b: [b, a, k], "])
    _end(writer, _named(writer, f"{sides[0]}.{verb}({sides[1]}, {joiner}NAME)"))


def _foreign(writer: Writer, table: str, result: str) -> None:
    """Each row with the size of its group."""
    group, sizes = writer.pick(fn.TABLE_PREDICATES[result]), writer.new("sizes")
    writer.line(f"{sizes} = {table}.group_by({group}).{_named(writer, 'count(NAME)')}")
    verb = writer.pick(["join", "left_join"])
    _end(writer, _named(writer, f"{table}.{verb}({sizes}, lambda a, b: [a, b], on={group}, NAME)"))


def _named(writer: Writer, call: str) -> str:
    return call.replace("NAME", f'name="{writer.new("made")}"')


def _end(writer: Writer, text: str) -> None:
    writer.line(f'{text}.to_stream().to("{writer.new("changes-")}")' if writer.chance(50) else text)
