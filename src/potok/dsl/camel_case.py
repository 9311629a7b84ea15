"""Accept the camelCase spellings of Kafka Streams through one table of aliases."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
"""The methods of a grouped stream."""


class Spelling:
    """Find a method by its Kafka Streams spelling, and suggest a method where there is none.

    Type checkers see the aliases that each handle declares, and no `__getattr__`, so they report every other name.
    """

    _elsewhere: Mapping[str, str] = {}
    """Methods of other handles, each with the method that leads there."""

    if not TYPE_CHECKING:

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
