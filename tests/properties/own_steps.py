"""Random steps of the user's own, and what puts streams in order or together."""

from __future__ import annotations

from tests.properties.programs import Var, Writer

GRACE = ["0", "seconds(3)", "seconds(30)"]
COUNTS = ["lambda k, v, n: n + 1", "lambda v, n: n + 10"]


def write_ordered(writer: Writer, upstream: Var) -> None:
    if upstream.ties:
        writer.add("peek(lambda k, v: None)", upstream)
        return
    writer.program.windowed = True
    writer.add(f'ordered({writer.pick(GRACE)}, name="{writer.new("ordered")}")', upstream, waited=True)


def write_process(writer: Writer, upstream: Var) -> None:
    """A processor sees the records of a key in one order only if they come from one partition."""
    if upstream.ties or len(upstream.topics) > 1:
        write_cogroup(writer, upstream)
        return
    writer.program.one_partition(upstream.topics)
    kind = "Counting" if upstream.rekeyed else writer.pick(["Counting", "Alarming"])
    writer.program.windowed |= kind == "Alarming"
    call = f'process_values({kind}, name="{writer.new("own")}")'
    writer.add(call, upstream, shape="any", typed=False, ties=kind == "Alarming", waited=True)


def write_cogroup(writer: Writer, upstream: Var) -> None:
    other = writer.pick(writer.streams)
    one, two = writer.pick(COUNTS), writer.pick(COUNTS)
    groups = f"{upstream.name}.group_by_key().cogroup({one}).cogroup({other.name}.group_by_key(), {two})"
    table = writer.new("table")
    writer.line(f'{table} = {groups}.aggregate(0, name="{table}")')
    writer.used |= {upstream.name, other.name}
