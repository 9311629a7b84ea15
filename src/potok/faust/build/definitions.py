"""What an app defines: topics, tables and channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from potok.duration import to_ms
from potok.errors import Location, TopologyError
from potok.faust.channel import Channel
from potok.faust.records.schema import Schema
from potok.faust.settings.options import CHANNEL, SET_TABLE, TABLE, TOPIC, left_out
from potok.faust.tables import tables as kinds
from potok.faust.topic import Topic


class DefinedTwice(TopologyError):
    """Two tables or agents with one name."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(
            f'there is {"an" if what[0] in "aeiou" else "a"} {what} "{name}" already',
            hint="state is found by name: choose another",
            at=Location.of_caller(),
        )


def typed_already(agent: str, given: Topic | Channel, types: Mapping[str, Any]) -> Topic | Channel:
    """What an agent takes, which knows the types of its records itself."""
    for name in (name for name, type_ in types.items() if type_ is not None):
        raise TopologyError(
            f'agent "{agent}" is given {given!r}, which has types already',
            hint=f"leave {name}= out here, and say it where that is made: app.topic(..., {name}=...)",
            at=Location.of_caller(),
        )
    return given


class WithDefinitions:
    """The part of an app that names what its agents take, write and keep."""

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
        """A topic, or several that are taken together.

        Args:
            key_type: The type of keys; bytes if left out.
            value_type: A record class or a plain type; JSON of any shape if left out.
            key_serializer: The format of keys.
            value_serializer: The format of values: `json`, `raw`, `text`, `avro`, ..., or a codec.
            partitions: How many the topic gets if the app creates it.
            retention: How long its records are kept, if the app creates it.
            compacting: Whether it keeps the last record of each key alone, if the app creates it.
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

    def Table(  # noqa: N802 - as Faust spells it
        self,
        name: str,
        *,
        default: Any = None,
        key_type: Any = None,
        value_type: Any = None,
        on_window_close: Callable[[Any, Any], Any] | None = None,
        window: Any = None,
        **options: Any,
    ) -> Any:
        """A table that agents write, and anybody reads.

        Args:
            default: What a key without a row has: a function without arguments, such as `int`.
            key_type: The type of its keys; any data if left out.
            value_type: A record class, if its values are records; that of the default if left out.
            on_window_close: Called with ((key, (start, end)), value) when a window has come to its end.
            window: `TumblingWindow(size)` or `HoppingWindow(size, step)`: what comes back is the table with windows.
            options: `changelog_topic` names a topic that its changes are written to, for those who follow them and for
                statements; True stands for one of its own.
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

    def SetTable(  # noqa: N802
        self, name: str, *, key_type: Any = None, value_type: Any = None, window: Any = None, **options: Any
    ) -> Any:
        """A table of sets, whose items are of the type `value_type`; any data if left out."""
        left_out(f'table "{name}"', options, TABLE | SET_TABLE)
        app: Any = self
        table = kinds.SetTable(app, name, key_type=key_type, value_type=value_type, at=Location.of_caller())
        made = self._keep(table, options)
        return made if window is None else window.of(made)

    SetGlobalTable = SetTable

    def _keep(self, table: kinds.Table, options: Mapping[str, Any]) -> kinds.Table:
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
        """Takes values from agents to an agent, in memory, within the record at hand."""
        left_out("a channel", options, CHANNEL)
        app: Any = self
        self._channels += 1
        return Channel(app, name or f"channel-{self._channels}")
