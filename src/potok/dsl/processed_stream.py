"""The outputs of a processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.handle import K, V
from potok.dsl.stream import Stream
from potok.dsl.table import Table
from potok.errors import TopologyError
from potok.topology.nodes import Channel, Process, StoreTable


class ProcessedStream(Stream[K, V]):
    """The main output of a processor, a stream like any other, with access to the named outputs and the stores."""

    def __init__(
        self,
        graph: GraphBuilder,
        node: Process,
        channels: Mapping[str, Channel],
        tables: Mapping[str, StoreTable],
    ) -> None:
        super().__init__(graph, node)
        self._channels, self._tables = channels, tables

    @property
    def stream(self) -> Stream[K, V]:
        """The main output."""
        return Stream(self._graph, self._node)

    @property
    def outputs(self) -> dict[str, Stream[Any, Any]]:
        """The named outputs."""
        return {name: Stream(self._graph, channel) for name, channel in self._channels.items()}

    def table(self, store: str) -> Table[Any, Any]:
        """Return a readable store as a table."""
        if store not in self._tables:
            raise TopologyError(
                f'the processor "{self._node.name}" has no readable store "{store}"',
                hint=f"declare it as {store} = value_store(readable=True)",
                at=calling_location(),
            )
        return Table(self._graph, self._tables[store])

    def __getitem__(self, output: str) -> Stream[Any, Any]:
        if output not in self._channels:
            known = ", ".join(f'"{name}"' for name in self._channels) or "none"
            raise TopologyError(
                f'the processor "{self._node.name}" has no output "{output}"',
                hint=f"it has: {known}; name all of them in outputs=",
                at=calling_location(),
            )
        return Stream(self._graph, self._channels[output])
