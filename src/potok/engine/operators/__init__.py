"""The operators of each family of steps, made from their nodes."""

from potok.engine.operators import (
    agents,
    aggregates,
    joins,
    processors,
    sinks,
    stateless,
    table_algebra,
    tables,
)

__all__ = ["agents", "aggregates", "joins", "processors", "sinks", "stateless", "table_algebra", "tables"]
