"""Steps that look at one record at a time: what each makes of it."""

from __future__ import annotations

from typing import Any

from potok.topology.nodes import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    Map,
    MapBatches,
    MapValues,
    Merge,
    Node,
    Peek,
    Repartition,
    SelectKey,
)
from tests.oracle.batches import one_row
from tests.oracle.call import UserError, attempt, call
from tests.oracle.records import Item


def outcome(node: Node, item: Item) -> list[Item]:
    """The records that a step makes of one; `UserError` if its function fails."""
    key, value = item.key, item.value
    match node:
        case Filter():
            return [item] if bool(call(node.predicate, key, value)) is not node.negate else []
        case Map():
            return [_paired(item, call(node.function, key, value))]
        case MapBatches():
            return one_row(node, item)
        case MapValues():
            return [item.with_value(call(node.function, key, value))]
        case FlatMap():
            pairs = [_pair(result) for result in _several(call(node.function, key, value))]
            return [item.part(*pair, index) for index, pair in enumerate(pairs)]
        case FlatMapValues():
            values = _several(call(node.function, key, value))
            return [item.part(key, each, index) for index, each in enumerate(values)]
        case SelectKey():
            return [item.with_key(call(node.function, key, value))]
        case Peek():
            call(node.action, key, value)
            return [item]
        case Foreach():
            call(node.action, key, value)
            return []
        case Merge() | Repartition():
            return [item]
    raise NotImplementedError(f"the oracle does not know {node.kind}")


def arm_of(node: Branch, item: Item) -> int:
    """The first predicate that is true; the number of predicates if none is."""
    for index, predicate in enumerate(node.predicates):
        if call(predicate, item.key, item.value):
            return index
    return len(node.predicates)


def _paired(item: Item, result: Any) -> Item:
    key, value = _pair(result)
    return item.with_key(key).with_value(value)


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise UserError(f"{result!r} is not a pair")
    return result[0], result[1]


def _several(result: Any) -> list[Any]:
    return attempt(list, result)  # type: ignore[no-any-return]
