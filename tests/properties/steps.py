"""Random steps on streams."""

from __future__ import annotations

from dataclasses import replace

from tests.properties import functions as fn
from tests.properties.own_steps import write_cogroup, write_ordered, write_process
from tests.properties.programs import Var, Writer


def write_step(writer: Writer) -> None:
    upstream = writer.pick(writer.streams[-3:])
    steps = {"row": _ROW_STEPS, "number": _NUMBER_STEPS, "any": _ANY_STEPS}[upstream.shape]
    writer.pick(steps)(writer, upstream)


def _filter(writer: Writer, upstream: Var) -> None:
    verb = writer.pick(["filter", "filter_not"])
    writer.add(f"{verb}({_predicate(writer, upstream)})", upstream)


def _predicate(writer: Writer, upstream: Var) -> str:
    return writer.pick(fn.ROW_PREDICATES if upstream.shape == "row" else fn.NUMBER_PREDICATES)


def _map_values(writer: Writer, upstream: Var) -> None:
    if upstream.shape == "number":
        writer.add(f"map_values({writer.pick(fn.NUMBER_TO_NUMBER)})", upstream)
        return
    shape = writer.pick(["row", "number", "any"])
    texts = {"row": fn.ROW_TO_ROW, "number": fn.ROW_TO_NUMBER, "any": fn.ROW_TO_ANY}[shape]
    writer.add(f"map_values({writer.pick(texts)})", upstream, shape=shape)


def _map_batches(writer: Writer, upstream: Var) -> None:
    """Functions of columns need values of a type, and not every step before them has one."""
    made = f"{upstream.name} = builder.stream("
    if not upstream.typed or not any(line.startswith(made) for line in writer.program.lines):
        _map_values(writer, upstream)
        return
    call, shape = writer.pick(fn.COLUMNS)
    writer.add(f"map_batches({call})", upstream, shape=shape)


def _map(writer: Writer, upstream: Var) -> None:
    writer.add(f"map({writer.pick(fn.ROW_PAIRS)})", upstream, rekeyed=True)


def _flat_map(writer: Writer, upstream: Var) -> None:
    writer.add(f"flat_map({writer.pick(fn.ROW_FLAT_PAIRS)})", upstream, rekeyed=True)


def _flat_map_values(writer: Writer, upstream: Var) -> None:
    shape = writer.pick(["row", "number"])
    texts = fn.ROW_FLAT_ROWS if shape == "row" else fn.ROW_FLAT_NUMBERS
    writer.add(f"flat_map_values({writer.pick(texts)})", upstream, shape=shape)


def key_function(writer: Writer, upstream: Var) -> str:
    return writer.pick(fn.ROW_KEYS if upstream.shape == "row" else fn.NUMBER_KEYS)


def _select_key(writer: Writer, upstream: Var) -> None:
    writer.add(f"select_key({key_function(writer, upstream)})", upstream, rekeyed=True)


def _branch(writer: Writer, upstream: Var) -> None:
    predicates = [_predicate(writer, upstream), _predicate(writer, upstream)]
    if writer.chance(30):
        arms = writer.new("arms")
        writer.line(f"{arms} = {upstream.name}.split(one={predicates[0]}, two={predicates[1]})")
        names = [f'{arms}["one"]', f'{arms}["two"]', f'{arms}["default"]']
    else:
        names = [writer.new("s"), writer.new("s")]
        writer.line(f"{', '.join(names)} = {upstream.name}.branch({', '.join(predicates)})")
    writer.used.add(upstream.name)
    writer.streams.extend(replace(upstream, name=name) for name in names)


def _merge(writer: Writer, upstream: Var) -> None:
    other = writer.pick(writer.streams)
    both = upstream.topics | other.topics
    writer.used.add(other.name)
    writer.add(
        f"merge({other.name})",
        upstream,
        shape=upstream.shape if upstream.shape == other.shape else "any",
        typed=upstream.typed and other.typed,
        topics=both,
        rekeyed=upstream.rekeyed or other.rekeyed,
        ties=upstream.ties or other.ties or bool(upstream.topics & other.topics),
        waited=upstream.waited or other.waited,
    )


def _repartition(writer: Writer, upstream: Var) -> None:
    writer.add("repartition()", upstream)


def _peek(writer: Writer, upstream: Var) -> None:
    writer.add("peek(lambda k, v: None)", upstream)


def _through(writer: Writer, upstream: Var) -> None:
    writer.add(f'through("{writer.new("mid-")}")', upstream)


def _source(writer: Writer, upstream: Var) -> None:
    """Another topic, so that there is something to merge with."""
    if len(writer.program.topics) < 2:
        writer.source()
        _merge(writer, upstream)
    else:
        _filter(writer, upstream) if upstream.shape != "any" else _repartition(writer, upstream)


_ANY_STEPS = [_repartition, _peek, _through, _merge, _source, write_ordered, write_process, write_cogroup]
_NUMBER_STEPS = [_filter, _map_values, _select_key, _branch, *_ANY_STEPS]
_ROW_STEPS = [_filter, _map_values, _map_batches, _map, _flat_map, _flat_map_values, _select_key, _branch, *_ANY_STEPS]
