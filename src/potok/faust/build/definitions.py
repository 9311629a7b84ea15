"""The definitions of an app: topics, tables and channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from potok.duration import to_ms
from potok.errors import Location, TopologyError
from potok.faust.messaging.channel import Channel
from potok.faust.messaging.topic import Topic
from potok.faust.records.codecs import Schema
from potok.faust.settings.options import CHANNEL, SET_TABLE, TABLE, TOPIC, left_out
from potok.faust.tables import tables as kinds
from potok.faust.tables.windowed import Window, WindowedTable

T = TypeVar("T", bound=kinds.Table)


class DefinedTwice(TopologyError):
    """Two tables or agents with the same name."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(
            f'there is {"an" if what[0] in "aeiou" else "a"} {what} "{name}" already',
            hint="state is found by name: choose another name",
            at=Location.of_caller(),
        )


def typed_already(agent: str, given: Topic | Channel, types: Mapping[str, Any]) -> Topic | Channel:
    """An input of an agent that already has types."""
    for name in (name for name, type_ in types.items() if type_ is not None):
        raise TopologyError(
            f'agent "{agent}" reads {given!r}, which already has types',
            hint=f"omit {name}= here, and pass it where the channel is defined: app.topic(..., {name}=...)",
            at=Location.of_caller(),
        )
    return given


class WithDefinitions:
    """The part of an app that defines what its agents read, write and store."""

    id: str
    options: dict[str, Any]
    topics: list[Topic]
    tables: dict[str, kinds.Table]
    _channels: int

    def topic(
        self,
        *names: str,
        key_type: Any = None,
        value_type: Any = None,
        key_serializer: str = "",
        value_serializer: Any = "",
        partitions: int | None = None,
        retention: Any = None,
        compacting: bool = False,
        schema: Schema | None = None,
        **options: Any,
    ) -> Topic:
        """Define a topic, or several that are read together.

        Args:
            key_type: The type of keys; by default bytes.
            value_type: A record class or a plain type; by default JSON of any shape.
            key_serializer: The format of keys.
            value_serializer: The format of values: `json`, `raw`, `text`, `avro`, ..., or a codec.
            partitions: The number of partitions, if the app creates the topic.
            retention: How long records are retained, if the app creates the topic.
            compacting: Whether only the last record of each key is retained, if the app creates the topic.
            schema: Types and formats in one object.
        """
        if not names:
            raise TopologyError("a topic needs a name", hint='app.topic("orders")', at=Location.of_caller())
        left_out(f'topic "{names[0]}"', options, TOPIC)
        app: Any = self
        if schema is not None:
            kept: dict[str, Any] = {"partitions": partitions, "retention": retention, "compacting": compacting}
            return self.topic(*names, **kept, **schema.options())
        made = Topic(
            app,
            names,
            key_type=key_type,
            value_type=value_type,
            key_serializer=key_serializer or self.options.get("key_serializer", ""),
            value_serializer=value_serializer or self.options.get("value_serializer", ""),
            partitions=partitions or self.options.get("topic_partitions"),
            retention_ms=None if retention is None else to_ms(retention),
            compacting=compacting,
            at=Location.of_caller(),
        )
        self.topics.append(made)
        return made

    @overload
    def Table(
        self,
        name: str,
        *,
        default: Any = None,
        key_type: Any = None,
        value_type: Any = None,
        on_window_close: Callable[[Any, Any], Any] | None = None,
        window: None = None,
        **options: Any,
    ) -> kinds.Table: ...

    @overload
    def Table(
        self,
        name: str,
        *,
        window: Window,
        default: Any = None,
        key_type: Any = None,
        value_type: Any = None,
        on_window_close: Callable[[Any, Any], Any] | None = None,
        **options: Any,
    ) -> WindowedTable: ...

    def Table(  # noqa: N802 - as Faust spells it
        self,
        name: str,
        *,
        default: Any = None,
        key_type: Any = None,
        value_type: Any = None,
        on_window_close: Callable[[Any, Any], Any] | None = None,
        window: Window | None = None,
        **options: Any,
    ) -> kinds.Table | WindowedTable:
        """Define a table that agents write and everyone can read.

        Args:
            default: The value of a key without a row: a function without arguments, such as `int`.
            key_type: The type of its keys; by default any data.
            value_type: A record class, if its values are records; by default that of the default.
            on_window_close: Called with ((key, (start, end)), value) when a window closes.
            window: `TumblingWindow(size)` or `HoppingWindow(size, step)`: the result is the table with windows.
            options: `changelog_topic` names a topic for its changes, for other consumers and for
                statements; True creates one with a default name.
        """
        left_out(f'table "{name}"', options, TABLE)
        app: Any = self
        made = self._keep(
            kinds.Table(
                app,
                name,
                default=default,
                key_type=key_type,
                value_type=value_type,
                on_window_close=on_window_close,
                at=Location.of_caller(),
            ),
            options,
        )
        return made if window is None else window.of(made)

    GlobalTable = Table
    """Every table can be read under any key, by agents that are not spread."""

    @overload
    def SetTable(
        self, name: str, *, key_type: Any = None, value_type: Any = None, window: None = None, **options: Any
    ) -> kinds.SetTable: ...

    @overload
    def SetTable(
        self, name: str, *, window: Window, key_type: Any = None, value_type: Any = None, **options: Any
    ) -> WindowedTable: ...

    def SetTable(  # noqa: N802 - as Faust spells it
        self, name: str, *, key_type: Any = None, value_type: Any = None, window: Window | None = None, **options: Any
    ) -> kinds.SetTable | WindowedTable:
        """Define a table of sets, whose items are of the type `value_type`; by default any data."""
        left_out(f'table "{name}"', options, TABLE | SET_TABLE)
        app: Any = self
        table = kinds.SetTable(app, name, key_type=key_type, value_type=value_type, at=Location.of_caller())
        made = self._keep(table, options)
        return made if window is None else window.of(made)

    SetGlobalTable = SetTable

    def _keep(self, table: T, options: Mapping[str, Any]) -> T:
        changelog: Topic | str | bool | None = options.get("changelog_topic")
        table.help = options.get("help") or ""
        if table.name in self.tables:
            raise DefinedTwice("table", table.name)
        if changelog:
            named = changelog.name if isinstance(changelog, Topic) else changelog
            table.changelog = named if isinstance(named, str) else f"{self.id}-{table.name}-changelog"
        self.tables[table.name] = table
        return table

    def channel(self, *, name: str = "", **options: Any) -> Channel:
        """Define a channel that passes values from agents to an agent, in memory, while a record is processed."""
        left_out("a channel", options, CHANNEL)
        app: Any = self
        self._channels += 1
        return Channel(app, name or f"channel-{self._channels}")
