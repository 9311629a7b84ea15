"""Patterns and their timeouts."""

from __future__ import annotations

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of
from potok.operators.patterns.match import MatchRecords
from potok.topology.nodes import Match, Timeouts


@post_shuffle_of(Match)
def match(node: Match, shop: OperatorFactory) -> Operator:
    return MatchRecords(
        node,
        shop.task,
        shop.step(node.upstream),
        shop.step(node).value,
        shop.step(node).exprs,
        shop.state,
        shop.clock(node),
        shop.spec.input_partitions,
    )


@post_shuffle_of(Timeouts)
def timeouts(node: Timeouts, shop: OperatorFactory) -> Operator:
    return Operator(node.name, shop.task)
