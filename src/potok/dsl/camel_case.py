"""The camelCase spellings of Kafka Streams, accepted by one table of aliases."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

ALIASES = {
    "addSink": "to",
    "collectList": "collect_list",
    "countDistinct": "count_distinct",
    "filterNot": "filter_not",
    "flatMap": "flat_map",
    "flatMapValues": "flat_map_values",
    "forEach": "foreach",
    "globalTable": "global_table",
    "groupBy": "group_by",
    "groupByKey": "group_by_key",
    "leftJoin": "left_join",
    "mapValues": "map_values",
    "outerJoin": "outer_join",
    "processValues": "process_values",
    "selectKey": "select_key",
    "toStream": "to_stream",
    "toTable": "to_table",
    "windowedBy": "windowed_by",
}


AGGREGATES = (
    "aggregate",
    "avg",
    "cogroup",
    "collect_list",
    "count",
    "count_distinct",
    "earliest",
    "latest",
    "max",
    "min",
    "reduce",
    "sum",
    "windowed_by",
)
"""The verbs of what is grouped."""


class Spelling:
    """Finds a method under its Kafka Streams spelling, and suggests one where there is none."""

    _elsewhere: Mapping[str, str] = {}
    """Verbs of other handles, each with what leads there."""

    def __getattr__(self, name: str) -> Any:
        alias = ALIASES.get(name)
        if alias is not None and hasattr(type(self), alias):
            return getattr(self, alias)
        if (alias or name) in self._elsewhere:
            raise AttributeError(f"a {type(self).__name__} has no {name}; {self._elsewhere[alias or name]}")
        verbs = [verb for verb in dir(type(self)) if not verb.startswith("_")]
        close = difflib.get_close_matches(name, verbs, n=1)
        hint = f"; did you mean {close[0]}?" if close else f"; it has: {', '.join(verbs)}"
        raise AttributeError(f"a {type(self).__name__} has no {name}{hint}")
