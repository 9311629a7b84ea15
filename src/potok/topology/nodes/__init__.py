"""The vertices of a topology, by family."""

from potok.topology.nodes.aggregates import Aggregate, Aggregation
from potok.topology.nodes.emission import Suppress
from potok.topology.nodes.keys import Repartition, SelectKey
from potok.topology.nodes.node import Node
from potok.topology.nodes.sinks import Foreach, Sink
from potok.topology.nodes.sources import Serde, StreamSource, TableSource, Timestamps
from potok.topology.nodes.stateless import Arm, Branch, Filter, FlatMap, FlatMapValues, Map, MapValues, Merge, Peek
from potok.topology.nodes.tables import TableFilter, TableMapValues, ToStream, ToTable
from potok.topology.nodes.windows import FixedWindow, Hopping, Session, Sliding, Tumbling, Window

__all__ = [
    "Aggregate",
    "Aggregation",
    "Arm",
    "Branch",
    "Filter",
    "FixedWindow",
    "FlatMap",
    "FlatMapValues",
    "Foreach",
    "Hopping",
    "Map",
    "MapValues",
    "Merge",
    "Node",
    "Peek",
    "Repartition",
    "SelectKey",
    "Serde",
    "Session",
    "Sink",
    "Sliding",
    "StreamSource",
    "Suppress",
    "TableFilter",
    "TableMapValues",
    "TableSource",
    "Timestamps",
    "ToStream",
    "ToTable",
    "Tumbling",
    "Window",
]
