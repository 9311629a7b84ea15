"""The aggregates of queries, as they were described when the queries started."""

from __future__ import annotations

import orjson

from potok.patterns.aggregates.describe import AggregateDescription
from potok.state.entry import decoding


def aggregates_in(query: str, description: bytes) -> list[AggregateDescription]:
    """Return the aggregates in the stored description of a query."""
    with decoding(f'the description of query "{query}"'):
        return [AggregateDescription.of_json(found) for found in orjson.loads(description).get("aggregates", ())]
