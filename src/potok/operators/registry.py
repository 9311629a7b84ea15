"""Register the operator factories of all families; importing this module is enough."""

from potok.operators.agents import factory as agents
from potok.operators.aggregates import factory as aggregates
from potok.operators.joins import factory as joins
from potok.operators.patterns import factory as patterns
from potok.operators.processors import factory as processors
from potok.operators.sinks import factory as sinks
from potok.operators.stateless import factory as stateless
from potok.operators.tables import factory as tables

__all__ = ["agents", "aggregates", "joins", "patterns", "processors", "sinks", "stateless", "tables"]
