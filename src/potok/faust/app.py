"""`App`: the entry point of a Faust-style program."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from potok.dsl.builder import StreamsBuilder
from potok.dsl.stream import Stream
from potok.dsl.table import Table as DslTable
from potok.dsl.unused_builder import ends_with, used
from potok.errors import Location
from potok.faust.agent import Agent
from potok.faust.agent_start import AgentFunction
from potok.faust.build.build import Build
from potok.faust.build.definitions import DefinedTwice, WithDefinitions, typed_already
from potok.faust.messaging.channel import Channel
from potok.faust.messaging.sending import Sent
from potok.faust.messaging.topic import Topic
from potok.faust.pages.pages import Pages, WithPages
from potok.faust.records.codecs import Schema
from potok.faust.services import worker_log
from potok.faust.services.loop import AppLoop
from potok.faust.services.running import TakesNoTopic
from potok.faust.services.service import Service
from potok.faust.services.services import Timed, WithServices
from potok.faust.services.signals import WithSignals
from potok.faust.services.worker_log import AppLog
from potok.faust.settings.conf import WithConf, versioned
from potok.faust.settings.credentials import options_of
from potok.faust.settings.options import AGENT, APP, broker_url, left_out, state_url
from potok.faust.tables import tables as kinds
from potok.faust.tables.agent_tables import KeptByAgents
from potok.faust.unsupported import REFUSED, without
from potok.log.broker import Broker
from potok.log.clients.producer import Producer
from potok.log.open import open_broker
from potok.settings import Settings
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer
from potok.topology.nodes import Node
from potok.topology.validate import validate

if TYPE_CHECKING:
    from potok.faust.cli import OfFunction
    from potok.faust.sql import Statements

Headers = tuple[tuple[str, bytes], ...]


@without(REFUSED["App"])
class App(WithDefinitions, WithPages, WithSignals, WithServices, WithConf):
    """The agents, tables and topics of one program; they run as one query.

    >>> app = App("order-processor", broker="kafka://localhost:9092", store="rocksdb://")

    Args:
        id: The name of the query, of its state and of its dead letters.
        broker: The log: `kafka://host:9092` or `file:./data`; by default the setting.
        store: The state: a directory, `redis://`, `postgresql://` or `cassandra://`. `rocksdb://` and `memory://` mean
            the store next to the log.
        options: Other options of `faust.App` are accepted and stored in `app.options`.
    """

    def __init__(self, id: str, *, broker: Any = None, store: Any = None, **options: Any) -> None:
        left_out(f'app "{id}"', options, APP)
        self.given_id, self.options = id, options
        self.id = versioned(id, options.get("version"))
        options_of(options.get("broker_credentials"), options.get("ssl_context"))
        self.broker, self.state = broker_url(broker or options.get("url")), state_url(store)
        self.init_signals()
        self.topics: list[Topic] = []
        self.tables: dict[str, kinds.Table] = {}
        self.agents: dict[str, Agent] = {}
        self.timed: list[Timed] = []
        self.services: list[Callable[[], Service]] = []
        self.commands: dict[str, OfFunction] = {}
        self.web = Pages(self)
        self.own_loop = AppLoop()
        self._channels = 0
        self._handles: dict[str, DslTable[Any, Any]] = {}
        self._builder = StreamsBuilder(self.id)
        ends_with(self._builder, "app.main()")
        self._lock = threading.Lock()
        self._producer: Producer | None = None

    logger = worker_log.logger
    should_stop = False
    """Whether the worker is stopping; tasks with their own loop check it."""

    @property
    def name(self) -> str:
        return self.given_id

    def choose(self, *, broker: Any = None, store: Any = None) -> None:
        """Choose another log, or another location for the state, before the app runs."""
        if broker is not None:
            self.broker = broker_url(broker)
        if store is not None:
            self.state = state_url(store)

    def __repr__(self) -> str:
        return f'<App "{self.id}">'

    def __getstate__(self) -> dict[str, Any]:
        # An agent that mentions its app needs only what it can access while it runs.
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
            own_loop=AppLoop(),
            _producer=None,
            _lock=threading.Lock(),
        )
        self._builder = StreamsBuilder(self.id)
        self.init_signals()
        used(self._builder)

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
        key_type: Any = None,
        value_type: Any = None,
        schema: Schema | None = None,
        help: str = "",
        **options: Any,
    ) -> Callable[[AgentFunction], Agent]:
        """Turn an async function into an agent.

        Args:
            channel: The topic whose records it processes; by default its own.
            name: Its name; by default the function's.
            sink: Topics, agents and functions that get what it yields.
            on_error: Called with the name of the agent and the exception; the record becomes a dead letter anyway.
            key: A field such as `Order.user_id`, or a function of the value: the agent runs on all shards, each key on
                one of them. Without it, it is one task, and may access any key of its tables.
            sends: Topics that it sends to, if its code does not show them.
            tables: Tables that it uses, if its code does not show them.
            timeout: How many seconds it may wait for external calls while it processes one record.
            concurrency: How many records, each with a different key, it may process concurrently while it waits.
            key_type: The key type of its own topic, or of one given by name; likewise `value_type` and
                `schema`.
            help: Its description in the `agents` command; by default the first line of the function's docstring.
        """
        at = Location.of_caller()
        left_out(f'agent "{name}"' if name else "an agent", options, AGENT)

        def decorate(function: AgentFunction) -> Agent:
            called = name or getattr(function, "__name__", type(function).__name__)
            if called in self.agents:
                raise DefinedTwice("agent", called)
            types = {"key_type": key_type, "value_type": value_type, "schema": schema}
            given = f"{self.id}-{called}" if channel is None else channel
            topic = self.topic(given, **types) if isinstance(given, str) else typed_already(called, given, types)
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
                help=help,
                at=at,
            )
            self.agents[called] = made
            return made

        return decorate

    actor = agent

    def stream(self, topic: Topic | str, **options: Any) -> Stream[Any, Any]:
        """Return a topic as a stream of the DSL, for joins, windows and everything else, in the same query."""
        chosen = topic if isinstance(topic, Topic) else self.topic(topic)
        key, value = chosen.serdes(columns=True)
        formats = {"key_format": key.format, "value_format": value.format}
        return self._builder.stream(chosen.name, key=key.schema, value=value.schema, **formats, **options)

    def table_stream(self, table: kinds.Table, **options: Any) -> Stream[Any, Any]:
        """Return the changes of a table as a stream of the DSL."""
        return table.to_stream(**options)

    def handle_of(self, table: kinds.Table) -> DslTable[Any, Any]:
        """Return a table of agents as one of the DSL."""
        if table.name not in self._handles:
            window = None if table.windowed is None else table.windowed.window
            self._handles[table.name] = self._builder.kept(KeptByAgents(table.name, table.at, window))
        return self._handles[table.name]

    async def send(
        self, channel: Topic | Channel | Agent | str, key: Any = None, value: Any = None, **more: Any
    ) -> Sent:
        """Send a value to a topic, a channel or an agent."""
        known = {topic.name: topic for topic in self.topics}
        chosen = (known.get(channel) or self.topic(channel)) if isinstance(channel, str) else channel
        return await chosen.send(key=key, value=value, **more)

    @cached_property
    def statements(self) -> Statements:
        """Return the statements that `sql` has defined."""
        from potok.faust.sql import Statements

        return Statements(self)

    def sql(self, text: str) -> list[dict[str, Any]]:
        """Execute statements on the topics and tables of this app.

        CREATE ... AS SELECT and INSERT INTO ... SELECT, before the app starts, run next to its agents; SELECT
        returns rows of the last committed batch. A topic of records is a stream, and a table has `KEY` before
        its values.

        >>> app.sql("CREATE TABLE by_user AS SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id;")
        >>> app.sql("SELECT * FROM order_counts WHERE key = 'user_001';")
        """
        return self.statements.run(text)

    def command(self, *options: Any, base: Any = None, name: str = "", **attributes: Any) -> Callable[[Any], Any]:
        """Turn a function into a command: `python shop.py NAME ARGUMENTS`.

        Args:
            options: `option(...)` and `argument(...)` of `potok.faust.cli`, passed to the function by name. Without
                any, its parameters are the arguments.
            base: The class of its `self`, if it has that parameter.
            name: By default the name of the function.
        """
        from potok.faust.cli import BUILT_IN, AppCommand, NameTaken, OfFunction

        def decorate(function: Any) -> Any:
            called = name or function.__name__.lower().replace("_", "-")
            if called in BUILT_IN or called in self.commands:
                raise NameTaken(called)
            self.commands[called] = OfFunction(function, options, base or AppCommand, attributes)
            return function

        return decorate

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Run the command line: `worker`, `send`, `agents`, `tables`, `models`, `reset`."""
        from potok.faust.services.commands import main

        used(self._builder)
        self.discover()
        self.send_configured()
        main(self, arguments)

    def build(self) -> Topology:
        """Return the topology of all agents, and of the steps created with `stream`."""
        topology = Build(self, self.steps()).topology()
        if not topology.sources:
            raise TakesNoTopic(self)
        validate(topology)
        infer(topology)
        return topology

    def steps(self) -> tuple[Node, ...]:
        """Return the steps created with `stream`, and from tables in the DSL."""
        return self._builder.nodes()

    def settings(self, **given: Any) -> Settings:
        return Settings.load(**{"broker": self.broker, "state": self.state, "kafka": self.kafka, **given})

    @property
    def log(self) -> AppLog:
        """`app.log()` opens the log of records; `app.log.info(...)` writes to that of the worker."""
        return AppLog(self._open)

    def note_use(self) -> None:
        """Record that the program uses the app, so that no warning about a missing worker is printed."""
        used(self._builder)

    def _open(self) -> Broker:
        self.note_use()
        settings = self.settings()
        return open_broker(settings.broker, settings)

    def produce(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int | None, headers: Headers | None
    ) -> Sent:
        """Append a record from outside of agents; it is durable when this returns its position."""
        used(self._builder)
        header_list = list(headers or ())
        self.on_produce_message.send_now(
            self, key=key, value=value, partition=None, timestamp=timestamp, headers=header_list
        )
        with self._lock:
            if self._producer is None:
                self._producer = Producer(self.log(), linger=0)
            landed = self._producer.send(topic, value, key, timestamp, tuple(header_list) or headers)
        return Sent(topic) if landed is None else Sent(topic, landed.partition, landed.first_offset, timestamp)
