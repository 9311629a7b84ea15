"""Random joins of a stream: with another, and with a table as it was at the time of each record."""

from __future__ import annotations

from tests.properties.programs import Var, Writer

WITHIN = ["seconds(3)", "(0, seconds(5))", "(milliseconds(2500), 0)", "0"]
GRACE = ["0", "seconds(2)", "seconds(30)"]
JOINERS = ["", "lambda a, b: [a, b], ", "lambda k, a, b: [k, a is None, b is None], "]
ROW_JOINERS = ['lambda a, b: {"s": a["s"], "n": a["n"] + b["n"]}, ', 'lambda a, b: a["s"], ']


def write_join(writer: Writer) -> None:
    left, right = writer.pick(writer.streams[-3:]), writer.pick(writer.streams)
    sides = [left.name, right.name]
    if not (_by_text(writer, left) and _by_text(writer, right)):
        sides = [f'{side}.select_key(lambda k, v: "all", key=str)' for side in sides]
    rows = left.shape == right.shape == "row"
    joiner = writer.pick([*JOINERS, *ROW_JOINERS] if rows else JOINERS)
    verb = writer.pick(["join", "left_join", "outer_join"])
    options = f'within={writer.pick(WITHIN)}, grace={writer.pick(GRACE)}, name="{writer.new("joined")}"'
    made = writer.new("s")
    writer.line(f"{made} = {sides[0]}.{verb}({sides[1]}, {joiner}{options})")
    writer.used |= {left.name, right.name}
    writer.program.windowed = True
    writer.streams.append(Var(made, "any", False, left.topics | right.topics, rekeyed=True, ties=True))


def write_lookup(writer: Writer) -> None:
    """Each record waits, so that what it meets does not depend on what came first; or all input is there."""
    stream = writer.pick(writer.streams[-3:])
    if len(writer.program.topics) > 2 or not _by_text(writer, stream):
        write_join(writer)
        return
    table, before = writer.source("table"), len(writer.program.topics)
    topic = f"t{before}"
    if writer.program.topics[topic].key_type != "str" or topic in stream.topics:
        writer.line(f'{table}.to_stream().to("{writer.new("changes-")}")')
        return
    verb, joiner = writer.pick(["join", "left_join"]), writer.pick(["", "lambda k, a, b: [k, b is None], "])
    made = writer.new("s")
    waits = stream.waited or writer.chance(50)
    grace = f"grace={writer.pick(GRACE)}, " if waits else ""
    writer.line(f'{made} = {stream.name}.{verb}({table}, {joiner}{grace}name="{writer.new("looked")}")')
    writer.used.add(stream.name)
    writer.program.windowed = True
    if not waits:
        writer.program.all_at_once = True
        writer.streams.append(Var(made, "any", False, stream.topics, ties=stream.ties))
        return
    writer.streams.append(Var(made, "any", False, stream.topics | {topic}, rekeyed=True, ties=True))


def _by_text(writer: Writer, stream: Var) -> bool:
    """Whether the keys are those of topics whose keys are text."""
    topics = [writer.program.topics[topic] for topic in stream.topics]
    return not stream.rekeyed and all(topic.key_type == "str" for topic in topics)
