"""The vertices of a topology, by family."""

from potok.topology.nodes.agents import Agents, AgentSends, AgentTable
from potok.topology.nodes.aggregates import Aggregate, AggregatePart, Aggregation
from potok.topology.nodes.emission import Suppress
from potok.topology.nodes.joins import (
    HistoryFilter,
    HistoryLookup,
    HistoryMapValues,
    JoinKind,
    JoinWindow,
    LookupKey,
    StreamJoin,
    TableLookup,
    TableRecords,
)
from potok.topology.nodes.node import Node
from potok.topology.nodes.patterns import Match, Timeouts
from potok.topology.nodes.processors import AggregateRoot, Channel, Fold, Ordered, Process, Saga, StoreTable
from potok.topology.nodes.sinks import Deliver, Foreach, Sink
from potok.topology.nodes.sources import Serde, StreamSource, TableSource, Timestamps
from potok.topology.nodes.stateless import (
    About,
    Annotate,
    Arm,
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    FrameFormat,
    Map,
    MapBatches,
    MapValues,
    Merge,
    Peek,
    Repartition,
    SelectKey,
)
from potok.topology.nodes.table_algebra import TableAggregate, TableGroup
from potok.topology.nodes.table_joins import ForeignJoin, ForeignKey, ForeignMatch, TableJoin
from potok.topology.nodes.tables import TableFilter, TableMapValues, ToStream, ToTable
from potok.topology.nodes.windows import FixedWindow, Hopping, Session, Sliding, Tumbling, Window

__all__ = [
    "About",
    "AgentSends",
    "AgentTable",
    "Agents",
    "Aggregate",
    "AggregatePart",
    "AggregateRoot",
    "Aggregation",
    "Annotate",
    "Arm",
    "Branch",
    "Channel",
    "Deliver",
    "Filter",
    "FixedWindow",
    "FlatMap",
    "FlatMapValues",
    "Fold",
    "Foreach",
    "ForeignJoin",
    "ForeignKey",
    "ForeignMatch",
    "FrameFormat",
    "HistoryFilter",
    "HistoryLookup",
    "HistoryMapValues",
    "Hopping",
    "JoinKind",
    "JoinWindow",
    "LookupKey",
    "Map",
    "MapBatches",
    "MapValues",
    "Match",
    "Merge",
    "Node",
    "Ordered",
    "Peek",
    "Process",
    "Repartition",
    "Saga",
    "SelectKey",
    "Serde",
    "Session",
    "Sink",
    "Sliding",
    "StoreTable",
    "StreamJoin",
    "StreamSource",
    "Suppress",
    "TableAggregate",
    "TableFilter",
    "TableGroup",
    "TableJoin",
    "TableLookup",
    "TableMapValues",
    "TableRecords",
    "TableSource",
    "Timeouts",
    "Timestamps",
    "ToStream",
    "ToTable",
    "Tumbling",
    "Window",
]
