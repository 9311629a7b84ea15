"""`App`: where a program in Faust's style begins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from potok.app import tables as kinds
from potok.app.agent import Agent, AgentFunction
from potok.app.build import Build
from potok.app.channel import Channel
from potok.app.conf import WithConf, versioned
from potok.app.kept_by_agents import KeptByAgents
from potok.app.options import AGENT, APP, CHANNEL, TABLE, TOPIC, left_out
from potok.app.pages import Pages, WithPages
from potok.app.schema import Schema
from potok.app.service import Service
from potok.app.services import Timed, WithServices
from potok.app.signals import WithSignals
from potok.app.topic import Topic
from potok.app.urls import broker_url, state_url
from potok.dsl.builder import StreamsBuilder
from potok.dsl.forgotten import used
from potok.dsl.stream import Stream
from potok.dsl.table import Table as DslTable
from potok.duration import to_ms
from potok.errors import Location, TopologyError
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.log.producer import Producer
from potok.settings import Settings
from potok.topology.graph import Topology
from potok.topology.infer import infer
from potok.topology.validate import validate
from potok.views.tables import Tables

if TYPE_CHECKING:
    from potok.app.sql import Statements

Headers = tuple[tuple[str, bytes], ...]


class DefinedTwice(TopologyError):
    """Two tables or agents with one name."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(
            f'there is a {what} "{name}" already',
            hint="state is found by name: choose another",
            at=Location.of_caller(),
        )


class App(WithPages, WithSignals, WithServices, WithConf):
    """The agents, tables and topics of one program; they run as one query.

    >>> app = App("order-processor", broker="kafka://localhost:9092", store="rocksdb://")

    Args:
        id: Names the query: its state and its dead letters are found under it.
        broker: Where the log lives: `kafka://host:9092` or `file:./data`; the setting if left out.
        store: Where state is kept: a directory, `redis://` or `postgresql://`. `rocksdb://` and `memory://` mean the
            store beside the log.
        options: Others of `faust.App` are accepted and remembered in `app.options`.
    """

    def __init__(self, id: str, *, broker: Any = None, store: Any = None, **options: Any) -> None:
        left_out(f'app "{id}"', options, APP)
        self.given_id, self.options = id, options
        self.id = versioned(id, options.get("version"))
        self.broker, self.state = broker_url(broker or options.get("url")), state_url(store)
        self.begin_signals()
        self.topics: list[Topic] = []
        self.tables: dict[str, kinds.Table] = {}
        self.agents: dict[str, Agent] = {}
        self.timed: list[Timed] = []
        self.services: list[Callable[[], Service]] = []
        self.commands: dict[str, tuple[Callable[..., Any], str]] = {}
        self.web = Pages(self)
        self._channels = 0
        self._handles: dict[str, DslTable] = {}
        self._builder = StreamsBuilder(self.id)
        self._lock = threading.Lock()
        self._producer: Producer | None = None

    @property
    def name(self) -> str:
        return self.given_id

    def choose(self, *, broker: Any = None, store: Any = None) -> None:
        """Choose another log, or another place for the state, before the app runs."""
        if broker is not None:
            self.broker = broker_url(broker)
        if store is not None:
            self.state = state_url(store)

    def __repr__(self) -> str:
        return f'<App "{self.id}">'

    def __getstate__(self) -> dict[str, Any]:
        # An agent that mentions its app needs no more of it than what it can ask while it runs.
        return {"id": self.id, "given_id": self.given_id, "options": {}, "broker": self.broker, "state": self.state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(
            state,
            topics=[],
            tables={},
            agents={},
            timed=[],
            services=[],
            commands={},
            web=Pages(self),
            _producer=None,
            _lock=threading.Lock(),
        )
        self._builder = StreamsBuilder(self.id)
        self.begin_signals()
        used(self._builder)

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
        if schema is not None:
            kept: dict[str, Any] = {"partitions": partitions, "retention": retention, "compacting": compacting}
            return self.topic(*names, **kept, **schema.options())
        made = Topic(
            self,
            names,
            key_type=key_type,
            value_type=value_type,
            key_serializer=key_serializer or self.options.get("key_serializer", ""),
            value_serializer=value_serializer or self.options.get("value_serializer", ""),
            partitions=partitions or self.options.get("topic_partitions"),
            retention_ms=None if retention is None else _retention_ms(retention),
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
        made = self._keep(
            kinds.Table(
                self,
                name,
                default=default,
                key_type=key_type,
                value_type=value_type,
                on_window_close=on_window_close,
                at=Location.of_caller(),
            ),
            options.get("changelog_topic"),
        )
        return made if window is None else window.of(made)

    GlobalTable = Table
    """Every table can be read under any key, by agents that are not spread."""

    def SetTable(self, name: str, *, key_type: Any = None, **options: Any) -> kinds.Table:  # noqa: N802
        """A table of sets."""
        left_out(f'table "{name}"', options, TABLE)
        made = kinds.SetTable(self, name, key_type=key_type, at=Location.of_caller())
        return self._keep(made, options.get("changelog_topic"))

    SetGlobalTable = SetTable

    def _keep(self, table: kinds.Table, changelog: Topic | str | bool | None) -> kinds.Table:
        if table.name in self.tables:
            raise DefinedTwice("table", table.name)
        if changelog:
            named = changelog.name if isinstance(changelog, Topic) else changelog
            table.changelog = named if isinstance(named, str) else f"{self.id}-{table.name}-changelog"
        self.tables[table.name] = table
        return table

    def agent(
        self,
        channel: Topic | Channel | str | None = None,
        *,
        name: str = "",
        sink: Sequence[Any] = (),
        on_error: Callable[..., Any] | None = None,
        key: Any = None,
        sends: Sequence[Topic | str] = (),
        tables: Sequence[kinds.Table] = (),
        timeout: float | None = 30.0,
        concurrency: int = 1,
        **options: Any,
    ) -> Callable[[AgentFunction], Agent]:
        """Make an agent of an async function.

        Args:
            channel: The topic whose records it takes; one of its own if left out.
            name: Names it; the function's name if left out.
            sink: Topics, agents and functions that get what it yields.
            on_error: Called with the name of the agent and what it raised; the record is a dead letter anyway.
            key: A field such as `Order.user_id`, or a function of the value: the agent runs on all shards, each key on
                one of them. Without it, it is one task, and may use its tables under any key.
            sends: Topics that it sends to, where its code does not show them.
            tables: Tables that it uses, where its code does not show them.
            timeout: For how many seconds it may wait for something outside, while it has one record.
            concurrency: How many records it may have at once while it waits, each of another key.
        """
        at = Location.of_caller()
        left_out(f'agent "{name}"' if name else "an agent", options, AGENT)

        def decorate(function: AgentFunction) -> Agent:
            called = name or getattr(function, "__name__", type(function).__name__)
            if called in self.agents:
                raise DefinedTwice("agent", called)
            given = f"{self.id}-{called}" if channel is None else channel
            topic = self.topic(given) if isinstance(given, str) else given
            made = Agent(
                self,
                function,
                topic,
                name=called,
                sink=sink,
                on_error=on_error,
                key=key,
                sends=sends,
                tables=tables,
                timeout_s=timeout,
                concurrency=concurrency,
                at=at,
            )
            self.agents[called] = made
            return made

        return decorate

    actor = agent

    def channel(self, *, name: str = "", **options: Any) -> Channel:
        """Takes values from agents to an agent, in memory, within the record at hand."""
        left_out("a channel", options, CHANNEL)
        self._channels += 1
        return Channel(self, name or f"channel-{self._channels}")

    def stream(self, topic: Topic | str, **options: Any) -> Stream:
        """A topic as a stream of the DSL: joins, windows and all the rest, in the same query."""
        chosen = topic if isinstance(topic, Topic) else self.topic(topic)
        key, value = chosen.serdes()
        formats = {"key_format": key.format, "value_format": value.format}
        return self._builder.stream(chosen.name, key=key.schema, value=value.schema, **formats, **options)

    def table_stream(self, table: kinds.Table, **options: Any) -> Stream:
        """The changes of a table as a stream of the DSL."""
        return table.to_stream(**options)

    def handle_of(self, table: kinds.Table) -> DslTable:
        """A table of agents as one of the DSL."""
        if table.name not in self._handles:
            window = None if table.windowed is None else table.windowed.window
            self._handles[table.name] = self._builder.kept(KeptByAgents(table.name, table.at, window))
        return self._handles[table.name]

    async def send(
        self, channel: Topic | Channel | Agent | str, key: Any = None, value: Any = None, **more: Any
    ) -> None:
        """Send a value to a topic, a channel or an agent."""
        known = {topic.name: topic for topic in self.topics}
        chosen = (known.get(channel) or self.topic(channel)) if isinstance(channel, str) else channel
        await chosen.send(key=key, value=value, **more)

    @cached_property
    def statements(self) -> Statements:
        """What `sql` has defined."""
        from potok.app.sql import Statements

        return Statements(self)

    def sql(self, text: str) -> list[dict[str, Any]]:
        """Carry out statements on the topics and tables of this app.

        CREATE ... AS SELECT and INSERT INTO ... SELECT, before the app starts, run beside its agents; SELECT gives rows
        of the last committed batch. A topic of records is a stream, and a table has `KEY` before its values.

        >>> app.sql("CREATE TABLE by_user AS SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id;")
        >>> app.sql("SELECT * FROM order_counts WHERE key = 'user_001';")
        """
        return self.statements.run(text)

    def command(self, *, name: str = "") -> Callable[[Any], Any]:
        """Make a command of a function: `python shop.py NAME ARGUMENTS`."""

        def decorate(function: Any) -> Any:
            text = (function.__doc__ or "").strip().partition("\n")[0]
            self.commands[name or function.__name__.replace("_", "-")] = function, text
            return function

        return decorate

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """What the program does from the command line: `worker`, `send`, `agents`, `tables`, `models`, `reset`."""
        from potok.app.commands import main

        used(self._builder)
        self.discover()
        self.tell_configured()
        main(self, arguments)

    def build(self) -> Topology:
        """The topology of all agents, and of what was made with `stream`."""
        topology = Build(self, self._builder.nodes()).topology()
        validate(topology)
        infer(topology)
        return topology

    def settings(self, **given: Any) -> Settings:
        return Settings.load(**{"broker": self.broker, "state": self.state, **given})

    def log(self) -> Broker:
        """The log of this app, opened."""
        settings = self.settings()
        return open_broker(settings.broker, settings)

    def tables_now(self) -> Tables:
        """All tables as of the last committed batch."""
        return Tables(self.log(), self.id)

    def produce(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int | None, headers: Headers | None
    ) -> None:
        """Append a record from outside of agents; it is durable when this returns."""
        told = list(headers or ())
        self.on_produce_message.send_now(self, key=key, value=value, partition=None, timestamp=timestamp, headers=told)
        with self._lock:
            if self._producer is None:
                self._producer = Producer(self.log(), linger_ms=0)
            self._producer.send(topic, value, key, timestamp, tuple(told) or headers)


def _retention_ms(given: Any) -> int:
    return round(given * 1000) if isinstance(given, int | float) else to_ms(given)
