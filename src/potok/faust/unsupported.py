"""The names of Faust that Potok does not have, each with what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from potok.errors import TopologyError

T = TypeVar("T")

_JOIN = "join streams of the DSL: app.stream(orders).join(app.stream(payments), ..., within=timedelta(minutes=5))"
_TABLE_JOIN = "join in the DSL: app.stream(orders).join(table.to_table(), lambda order, row: ...)"
_PARTITIONS = "Spark assigns the partitions; @app.on_partitions_assigned.connect reports them"
_BATCH = "a batch commits all of its results in one transaction"
_CELLS = "state is stored in fenced cells, and needs no changelog; changelog_topic= writes one for other consumers"
_METRICS = "progress of each step: potok run shop.py; offsets: potok offsets show"
_MOCK = "test with agent.test_context() or potok.testing.TestDriver(app)"
_SENT = "a send is encoded immediately, and durable with its batch: await topic.send(...)"
_SERVICE = "a service is a plain object here: on_start, on_stop, tasks and timers"
_START = "the app starts with its worker: app.main(), python shop.py worker"
_TRACE = "the log reports each batch: worker -l debug; potok explain shop.py shows the steps"
_SETTINGS = "app.conf has the arguments of App(...); settings of Potok are in potok.toml"

REFUSED: dict[str, dict[str, str]] = {
    "faust": {
        "livecheck": "test with potok.testing.TestDriver(app)",
        "sensors": _METRICS,
        "ModelOptions": "options of a record class are its keywords: class Order(Record, validation=True)",
        "Monitor": _METRICS,
        "Sensor": _METRICS,
        "Settings": _SETTINGS,
        "SlidingWindow": "the DSL has such windows: app.stream(topic).group_by_key().windowed_by(sliding(...))",
        "Worker": "run it with app.main(), python shop.py worker, or potok run shop.py",
        "OAuthCredentials": "Kafka's client fetches tokens itself: [kafka] of potok.toml, "
        'sasl.mechanism = "OAUTHBEARER", sasl.oauthbearer.method = "oidc"',
    },
    "App": {
        "BootStrategy": _START,
        "SCAN_CATEGORIES": "decorators take effect when their package is imported",
        "create_event": _MOCK,
        "maybe_start_client": _START,
        "maybe_start_producer": _START,
        "start_client": _START,
        "on_rebalance_end": _PARTITIONS,
        "on_rebalance_return": _PARTITIONS,
        "on_rebalance_start": _PARTITIONS,
        "on_started_init_extra_services": "@app.service adds one",
        "on_started_init_extra_tasks": "@app.task adds one",
        "on_started_init_web_server": "pages are served by the worker, and by potok serve",
        "on_webserver_init": "pages are served by the worker, and by potok serve",
        "web_server_driver_version": "pages are served by the worker, and by potok serve",
        "web_server_url": "app.web.url is the URL of the pages",
        "worker_init": "@app.on_worker_init.connect is called when the worker starts",
        "worker_init_post_autodiscover": "@app.on_after_configured.connect is called when everything is imported",
        "FlowControlQueue": "nothing is queued: Spark plans each batch",
        "Settings": _SETTINGS,
        "LiveCheck": "test with potok.testing.TestDriver(app)",
        "Worker": "run it with app.main(), python shop.py worker, or potok run shop.py",
        "assignor": _PARTITIONS,
        "cache": "store responses in a table, or cache them in front of the server",
        "client_only": "a program that only sends needs no worker: await topic.send(...)",
        "commit": _BATCH,
        "consumer": "agents read records; other code reads with potok.Consumer",
        "consumer_generation_id": _PARTITIONS,
        "http_client": "create a client in the agent, or in a function that it calls",
        "in_transaction": _BATCH,
        "monitor": _METRICS,
        "on_init_extra_service": "@app.service adds one",
        "producer": "send with topic.send(...), or potok.Producer",
        "producer_only": "a program that only sends needs no worker: await topic.send(...)",
        "producer_transport": "the log is chosen by broker=: kafka://host:9092 or file:./data",
        "rebalancing_count": _PARTITIONS,
        "router": "every server answers for all keys: potok serve",
        "sensors": _METRICS,
        "serializers": "codecs are found by name: from potok.faust.records.codecs import register, get_codec",
        "trace": _TRACE,
        "traced": _TRACE,
        "tracer": _TRACE,
        "transport": "the log is chosen by broker=: kafka://host:9092 or file:./data",
        "web_server": "pages are served by the worker, and by potok serve",
    },
    "Topic": {
        "as_future_message": _SENT,
        "decode": _MOCK,
        "empty": "agents receive records: @app.agent(topic)",
        "has_prefix": "use the name that the topic has in the log",
        "on_stop_iteration": _MOCK,
        "prepare_headers": _SENT,
        "prepare_key": _SENT,
        "prepare_value": _SENT,
        "subscriber_count": "app.agents shows which agent reads what",
        "clone_using_queue": _MOCK,
        "deliver": _MOCK,
        "get": "agents receive records: @app.agent(topic)",
        "pattern": 'name the topics: app.topic("orders-eu", "orders-us")',
        "publish_message": "await topic.send(...)",
        "queue": "agents receive records: @app.agent(topic)",
        "throw": _MOCK,
        "on_decode_error": "a record that cannot be decoded becomes a dead letter: potok dead-letters list",
        "on_key_decode_error": "a record that cannot be decoded becomes a dead letter: potok dead-letters list",
        "on_value_decode_error": "a record that cannot be decoded becomes a dead letter: potok dead-letters list",
        "put": "await topic.send(key=..., value=...)",
    },
    "Channel": {
        "as_future_message": _SENT,
        "clone": "create another: app.channel()",
        "declare": "a channel is in memory, and there is nothing to declare",
        "decode": _MOCK,
        "derive": "create another: app.channel()",
        "empty": "agents read the values: @app.agent(channel)",
        "get_topic_name": "a channel is in memory, and has no topic",
        "maybe_declare": "a channel is in memory, and there is nothing to declare",
        "on_decode_error": "values are passed on unchanged, and never decoded",
        "on_key_decode_error": "values are passed on unchanged, and never decoded",
        "on_stop_iteration": _MOCK,
        "on_value_decode_error": "values are passed on unchanged, and never decoded",
        "prepare_headers": _SENT,
        "prepare_key": _SENT,
        "prepare_value": _SENT,
        "publish_message": _SENT,
        "subscriber_count": "app.agents shows which agent reads what",
        "get": "agents read the values: @app.agent(channel)",
        "queue": "agents read the values: @app.agent(channel)",
        "throw": _MOCK,
        "deliver": _MOCK,
        "clone_using_queue": _MOCK,
        "stream": "agents read the values: @app.agent(channel)",
    },
    "Stream": {
        "ack": _BATCH,
        "clone": "each method returns the stream to continue with",
        "concurrency_index": "instances of an agent are identical: store what they need in tables",
        "contribute_to_stream": _JOIN,
        "events_total": _METRICS,
        "get_active_stream": "each method returns the stream to continue with",
        "info": "python shop.py explain shows the steps",
        "on_merge": _JOIN,
        "prefix": 'name the topic: stream.through(app.topic("between"))',
        "remove_from_stream": _JOIN,
        "inner_join": _JOIN,
        "join": _JOIN,
        "left_join": _JOIN.replace(".join(", ".left_join("),
        "outer_join": _JOIN.replace(".join(", ".outer_join("),
        "join_strategy": _JOIN,
        "throw": _MOCK,
        "outbox": "sent records are written with the batch",
        "enable_acks": _BATCH,
        "derive_topic": 'name the topic: stream.through(app.topic("between"))',
        "get_root_stream": "each method returns the stream to continue with",
        "task_owner": "an agent has no task: it is driven batch by batch",
        "active_partitions": _PARTITIONS,
    },
    "Agent": {
        "channel_iterator": "an agent receives its stream as its argument",
        "clone": "define another: @app.agent(topic)",
        "on_partitions_assigned": _PARTITIONS,
        "on_partitions_revoked": _PARTITIONS,
        "actor_from_stream": _MOCK,
        "cancel": "stop the worker: agents run batch by batch",
        "on_isolated_partitions_assigned": _PARTITIONS,
        "on_isolated_partitions_revoked": _PARTITIONS,
        "on_shared_partitions_assigned": _PARTITIONS,
        "on_shared_partitions_revoked": _PARTITIONS,
        "stream": "an agent receives its stream as its argument",
        "actor_tracebacks": "a dead letter names the line that raised: potok dead-letters list",
    },
    "Table": {
        "WindowWrapper": "tumbling() and hopping() return the table with windows",
        "call_recover_callbacks": _CELLS,
        "clone": "define another: app.Table(...)",
        "contribute_to_stream": _TABLE_JOIN,
        "copy": "dict(table.items()) is a copy of the rows",
        "data": "a table is a dict itself: table.items()",
        "fromkeys": "table.update({key: value for key in keys}) in an agent",
        "on_clear": "table.to_stream() has all changes",
        "on_rebalance": _PARTITIONS,
        "on_recovery_completed": _CELLS,
        "remove_from_stream": _TABLE_JOIN,
        "combine": _TABLE_JOIN,
        "inner_join": _TABLE_JOIN,
        "join": _TABLE_JOIN,
        "left_join": _TABLE_JOIN.replace(".join(", ".left_join("),
        "outer_join": _TABLE_JOIN,
        "apply_changelog_batch": _CELLS,
        "changelog_topic_name": _CELLS,
        "need_active_standby_for": _CELLS,
        "on_changelog_event": _CELLS,
        "on_recover": _CELLS,
        "partition_for_key": "every key can be read anywhere",
        "persisted_offset": _CELLS,
        "raw_update": "call update() in an agent",
        "reset_state": "python shop.py reset deletes all tables of the app",
        "send_changelog": _CELLS,
        "on_key_set": "table.to_stream() has all changes",
        "on_key_del": "table.to_stream() has all changes",
        "on_key_get": "wrap the table in a function of your own",
    },
    "WindowedTable": {
        "ValueType": "table[key] is the WindowSet of a key",
        "as_ansitable": "print the result of items()",
        "clear": "windows are removed when they expire: .tumbling(size, expires=...)",
        "clone": "define another: app.Table(...).tumbling(...)",
        "get_relative_timestamp": "table[key].value(event) is the value for another record",
        "get_timestamp": "current_event().message.timestamp is the time of the current record",
        "key_index": "keys() always finds all keys",
        "key_index_table": "keys() always finds all keys",
        "on_del_key": "table.to_stream() has all changes",
        "on_recover": _CELLS,
        "on_set_key": "table.to_stream() has all changes",
        "popitem": "pop(key) removes a window",
        "join": _TABLE_JOIN,
        "left_join": _TABLE_JOIN.replace(".join(", ".left_join("),
    },
    "Service": {
        "Diag": _SERVICE,
        "abstract": "every subclass is a service of its own",
        "add_async_context": "enter it in on_start, leave it in on_stop",
        "add_context": "enter it in on_start, leave it in on_stop",
        "beacon": _SERVICE,
        "crash": "raise in a task: the exception is logged, and the service continues",
        "crash_reason": _SERVICE,
        "crashed": _SERVICE,
        "from_awaitable": "@app.task runs a function once",
        "human_tracebacks": _SERVICE,
        "itertimer": "@Service.timer(seconds) calls a method periodically",
        "join_services": "await service.start() for each",
        "logger": "self.log is the logger",
        "loop": "asyncio.get_running_loop()",
        "mundane_level": _SERVICE,
        "on_init": "write __init__",
        "on_init_dependencies": "add_dependency(service) in __init__",
        "remove_dependency": "stop it: await service.stop()",
        "service_reset": "await service.restart()",
        "set_shutdown": "await service.stop()",
        "shortlabel": "self.label",
        "shutdown_timeout": _SERVICE,
        "state": "self.started and self.should_stop",
        "supervisor": _SERVICE,
        "tracebacks": _SERVICE,
        "transition_with": _SERVICE,
        "transitions_to": _SERVICE,
        "wait": "await it: asyncio.wait_for(...)",
        "wait_first": "asyncio.wait(..., return_when=asyncio.FIRST_COMPLETED)",
        "wait_for_shutdown": "await self.wait_until_stopped()",
        "wait_for_stopped": "await self.wait_until_stopped()",
        "wait_many": "asyncio.wait(...)",
    },
    "Record": {},
    "cli": {"call_command": 'app.main(["greet", "ann"]) runs a command line'},
    "commands": {
        "clean-versions": "python shop.py reset, with version= of the old one, deletes its tables",
        "completion": "python shop.py -h lists the commands",
        "livecheck": "test with potok.testing.TestDriver(app)",
        "model": "python shop.py models --json lists all fields",
    },
}
"""By class name and attribute name."""


class Refused(TopologyError, AttributeError):
    """A name of Faust that Potok does not have."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"Faust's {name} is not supported", hint=hint)


class CannotImport(TopologyError, ImportError):
    """A name of the package `faust` that Potok does not have."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"faust.{name} is not supported", hint=hint)


class _Refusal:
    """A class attribute that raises when it is read, and that instances, subclasses and mixins may define."""

    def __init__(self, owner: type, name: str, hint: str) -> None:
        self._owner, self._name, self._hint = owner, name, hint

    def __get__(self, instance: object, owner: type) -> Any:
        try:
            return getattr(super(self._owner, owner if instance is None else instance), self._name)
        except AttributeError:
            raise Refused(f"{self._owner.__name__}.{self._name}", self._hint) from None


def without(names: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Decorate a class so that names of Faust that it does not have raise an error with what to use instead."""

    def decorate(cls: type[T]) -> type[T]:
        for name, hint in names.items():
            setattr(cls, name, _Refusal(cls, name, hint))
        return cls

    return decorate
