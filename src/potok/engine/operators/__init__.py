"""The operators of each family of steps, made from their nodes."""

from potok.engine.operators import aggregates, sinks, stateless, tables

__all__ = ["aggregates", "sinks", "stateless", "tables"]
