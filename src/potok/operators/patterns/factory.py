"""Patterns and their timeouts."""

from __future__ import annotations

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of
from potok.operators.patterns.match import MatchRecords
from potok.topology.nodes import Match, Timeouts


@post_shuffle_of(Match)
def match(node: Match, factory: OperatorFactory) -> Operator:
    return MatchRecords(
        node,
        factory.task,
        factory.step(node.upstream),
        factory.step(node).value,
        factory.step(node).exprs,
        factory.state,
        factory.watermark(node),
        factory.spec.input_partitions,
    )


@post_shuffle_of(Timeouts)
def timeouts(node: Timeouts, factory: OperatorFactory) -> Operator:
    return Operator(node.name, factory.task)
