"""`potok explain`: show how each step runs, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from potok.cli.options import Json, command_app
from potok.cli.output import note, print_json, print_paragraph
from potok.cli.queries.program import Program, load_topology

if TYPE_CHECKING:
    import pyarrow as pa

    from potok.topology.aggregations import AggregatePlan
    from potok.topology.execution_plan import Plan
    from potok.topology.graph import Topology
    from potok.topology.nodes import Node

app = command_app()

ORDER = "its result depends on the order of records from several partitions"


@app.command()
def explain(program: Program, as_json: Json = False) -> None:
    """Show how each step runs: natively or as Python, and why; its types; and where records move.

    Steps of level 0 run where records are read, the others on the shards of their keys; each level adds a shuffle.
    """
    topology = load_topology(program)
    steps = explained(topology)
    if as_json:
        for step in steps:
            print_json(step)
        return
    for step, (key, value) in zip(steps, short_types(topology), strict=True):
        details = [f"{step['kind']}, {step['runs']}, level {_level(step)}", f"key {key}, value {value}", _how(step)]
        print_paragraph(step["name"], [line for line in details if line])
    native, shuffles = sum(step["runs"] == "native" for step in steps), max(step["level"] for step in steps)
    note(f"{native} of {len(steps)} steps run natively; a batch takes {shuffles} shuffle{'' if shuffles == 1 else 's'}")


def explained(topology: Topology) -> list[dict[str, Any]]:
    """Return the description of each step with its level, its expressions and the decoded fields of a topic."""
    from potok.topology.describe import description_of
    from potok.topology.execution_plan import make_plan

    plan = make_plan(topology, shards=1)
    described = description_of(topology, plan.inferred)["steps"]
    return [step | _planned(plan, node) for step, node in zip(described, topology, strict=True)]


def _planned(plan: Plan, node: Node) -> dict[str, Any]:
    step, level = plan.inferred[node], plan.levels[node]
    exprs = [str(expr) for expr in step.exprs if expr is not None]
    topic = getattr(node, "topic", None) if not node.upstreams else None
    return {
        "level": level,
        "shuffle": level > max((plan.levels[upstream] for upstream in node.upstreams), default=0),
        "expressions": exprs + (_terms(step.plan) if step.plan else []),
        "fields": _decoded(plan.columns[topic], step.value) if topic else None,
    }


def _decoded(fields: list[str] | None, value: pa.DataType | None) -> list[str] | None:
    """Return the decoded fields; None if all are."""
    import pyarrow as pa

    every = fields is None or (value is not None and pa.types.is_struct(value) and len(fields) == value.num_fields)
    return None if every else fields


def _terms(plan: AggregatePlan) -> list[str]:
    """Return the accumulators of an aggregate."""
    if not plan.native:
        return [] if plan.selector is None else [str(plan.selector)]
    terms = [f"{slot.op}({'' if slot.expr is None else slot.expr})" for slot in plan.slots]
    return [f"{name}: {term}" for name, term in zip(plan.fields, terms, strict=True)] if plan.fields else terms


def short_types(topology: Topology) -> list[tuple[str, str]]:
    from potok.topology.inference.infer import infer

    inferred = infer(topology)
    return [(short_type(inferred[node].key), short_type(inferred[node].value)) for node in topology]


def short_type(type_: pa.DataType | None) -> str:
    """Render a type briefly; a struct as the names of its fields."""
    import pyarrow as pa

    if type_ is None:
        return "dynamic"
    if pa.types.is_struct(type_):
        return f"{{{', '.join(field.name for field in type_)}}}"
    return f"list of {short_type(type_.value_type)}" if pa.types.is_list(type_) else str(type_)


def _level(step: dict[str, Any]) -> str:
    return f"{step['level']} (shuffle)" if step["shuffle"] else str(step["level"])


def _how(step: dict[str, Any]) -> str:
    # The detail of a pattern warns of matches that can stay open forever.
    parts = [step["detail"] if step["kind"] == "match" else "", step["reason"], *step["expressions"]]
    if step["fields"] is not None:
        parts.append(f"decodes only {', '.join(step['fields']) or 'keys'}")
    if step["order_dependent"]:
        parts.append(ORDER)
    if step["guarantee"] not in (None, "exactly_once"):
        parts.append(step["guarantee"])
    return "; ".join(part for part in parts if part)
