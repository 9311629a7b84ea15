"""Every public name of Faust, and what it is here; `PYTHONPATH=tests python -m faust.faust_names` prints the table.

Whether a name is there, or is refused with what to do instead, is looked up in the code; only what differs is written
down here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import potok.faust as faust
from potok.faust.faust_paths import PATHS
from potok.faust.messaging.message import Message
from potok.faust.services.commands import parser_of
from potok.faust.services.signals import Signal
from potok.faust.settings.options import APP, USED
from potok.faust.tables.window_set import WindowSet
from potok.faust.tables.windowed import WindowedTable
from potok.faust.testing import AgentTest
from potok.faust.unsupported import REFUSED, CannotImport

SAME = "the same"


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_MODULES = tuple(path for path, names in PATHS.items() if names)

NAMES: dict[str, tuple[str, ...]] = {
    "faust": _names(
        """Agent App Channel ChannelT Codec Event EventT GSSAPICredentials GlobalTable HoppingWindow ModelOptions
        Monitor OAuthCredentials Record SASLCredentials SSLCredentials Schema Sensor Service ServiceT SetGlobalTable
        SetTable Settings SlidingWindow Stream StreamT Table Topic TopicT TumblingWindow Window Worker
        cli current_event livecheck models sensors serializers types uuid web"""
    ),
    "types": _names(
        "AgentT AppT ChannelT CodecT EventT FieldDescriptorT Message ModelT RecordMetadata SchemaT ServiceT StreamT TP"
    ),
    "App": _names(
        """BootStrategy FlowControlQueue GlobalTable LiveCheck SCAN_CATEGORIES SetGlobalTable SetTable Settings Table
        Worker actor agent assignor cache channel client_only command commit conf config_from_object configured consumer
        consumer_generation_id create_event crontab discover finalize finalized flow_control http_client in_recovery
        in_transaction is_leader log logger main maybe_start_client maybe_start_producer monitor on_after_configured
        on_before_configured on_before_shutdown on_configured on_init_extra_service on_partitions_assigned
        on_partitions_revoked on_produce_message on_rebalance_complete on_rebalance_end on_rebalance_return
        on_rebalance_start on_started on_started_init_extra_services on_started_init_extra_tasks
        on_started_init_web_server on_webserver_init on_worker_init page producer producer_only producer_transport
        rebalancing rebalancing_count router sensors send serializers service should_stop start_client stream
        table_route tables task timer topic topic_route topics trace traced tracer transport unassigned web web_server
        web_server_driver_version web_server_url worker_init worker_init_post_autodiscover"""
    ),
    "Signal": _names("connect disconnect send"),
    "Topic": _names(
        """as_future_message clone clone_using_queue declare decode deliver derive derive_topic empty get get_topic_name
        has_prefix key_type maybe_declare on_decode_error on_key_decode_error on_stop_iteration on_value_decode_error
        partitions pattern prepare_headers prepare_key prepare_value publish_message put queue send send_soon stream
        subscriber_count throw value_type"""
    ),
    "Channel": _names(
        """as_future_message clone clone_using_queue declare decode deliver derive empty get get_topic_name
        maybe_declare on_decode_error on_key_decode_error on_stop_iteration on_value_decode_error prepare_headers
        prepare_key prepare_value publish_message put queue send send_soon stream subscriber_count throw"""
    ),
    "Stream": _names(
        """ack active_partitions add_processor clone combine concurrency_index contribute_to_stream current_event
        derive_topic echo enable_acks enumerate events events_total filter get_active_stream get_root_stream group_by
        info inner_join items join join_strategy left_join noack noack_take on_merge outbox outer_join prefix
        remove_from_stream take take_events take_with_timestamp task_owner through throw __and__"""
    ),
    "Event": _names("ack acked app forward headers key message send value"),
    "Message": _names("headers key offset partition timestamp topic tp value"),
    "Agent": _names(
        """actor_from_stream actor_tracebacks add_sink ask ask_nowait cancel cast channel channel_iterator clone
        get_topic_names info join kvjoin kvmap map name on_isolated_partitions_assigned on_isolated_partitions_revoked
        on_partitions_assigned on_partitions_revoked on_shared_partitions_assigned on_shared_partitions_revoked send
        stream test_context"""
    ),
    "AgentTestWrapper": _names("processed_offset put results sent_offset throw"),
    "Table": _names(
        """WindowWrapper apply_changelog_batch as_ansitable call_recover_callbacks changelog_topic changelog_topic_name
        clear clone combine contribute_to_stream copy data default fromkeys get hopping info inner_join is_global items
        join key_type keys left_join name need_active_standby_for on_changelog_event on_clear on_key_del on_key_get
        on_key_set on_rebalance on_recover on_recovery_completed on_window_close outer_join partition_for_key
        persisted_offset pop popitem raw_update remove_from_stream reset_state send_changelog setdefault tumbling update
        using_window value_type values"""
    ),
    "WindowWrapper": _names(
        """ValueType as_ansitable clear clone get get_relative_timestamp get_timestamp items key_index key_index_table
        keys name on_del_key on_recover on_set_key pop popitem relative_to relative_to_field relative_to_now
        relative_to_stream setdefault update values"""
    ),
    "WindowSet": _names("current delta now value"),
    "Record": _names(
        """asdict derive dumps from_data is_valid loads make_final to_representation validate validate_or_raise
        validation_errors"""
    ),
    "models.FieldDescriptor": _names(
        """coerce default exclude field getattr ident input_name output_name prepare_value required to_python validate
        validate_all validation_error"""
    ),
    "models.fields": _names(
        "BooleanField BytesField DatetimeField DecimalField FloatField IntegerField NumberField StringField"
    ),
    "Schema": _names(
        "allow_empty dumps_key dumps_value key_serializer key_type loads_value value_serializer value_type"
    ),
    "serializers.codecs": _names("Codec dumps get_codec loads register"),
    "Service": _names(
        """Diag abstract add_async_context add_context add_dependency add_future add_runtime_dependency beacon crash
        crash_reason crashed crontab from_awaitable human_tracebacks itertimer join_services label logger loop
        maybe_start mundane_level on_first_start on_init on_init_dependencies on_restart on_shutdown on_start on_started
        on_stop remove_dependency restart restart_count service_reset set_shutdown shortlabel should_stop
        shutdown_timeout sleep start started state stop supervisor task timer tracebacks transition_with transitions_to
        wait wait_first wait_for_shutdown wait_for_stopped wait_many wait_until_stopped"""
    ),
    "web": _names("Blueprint Request Response View Web gives_model takes_model"),
    "View": _names("bytes error html json notfound path_for redirect text url_for"),
    "cli": _names("AppCommand Command argument call_command option"),
    "modules": _MODULES,
    "commands": _names("agents clean-versions completion livecheck model models reset send tables worker"),
}
"""By what has them."""

DIFFERS: dict[str, str] = {
    "App.GlobalTable": "as `Table`: any agent that is not spread sees all rows",
    "App.SetGlobalTable": "as `SetTable`",
    "App.Table": "outside agents it shows the last committed batch and is read-only",
    "App.actor": "as `agent`",
    "App.agent": "`key=` spreads it, `timeout=` ends its waiting; `concurrency=` keeps the order of each key",
    "App.command": "without options, the parameters of the function are the arguments",
    "App.channel": "connects agents while the current record is processed",
    "App.main": "`explain` too, and `--json`; `potok run FILE` works as well",
    "App.on_partitions_assigned": "called once, with all partitions of the topics that agents read",
    "App.on_partitions_revoked": "called at the end, with the same",
    "App.on_produce_message": "for sends from outside of agents",
    "App.on_rebalance_complete": "called once, when the query runs",
    "App.service": "in the process of the worker",
    "App.stream": "a stream of the DSL: joins, sessions, `emit_final`, in the same query; `&` is `merge`",
    "App.task": "in the process of the worker",
    "App.timer": "in the process of the worker",
    "App.crontab": "in the process of the worker; in UTC unless `timezone=` is set",
    "App.topic": "`pattern=` is refused; `partitions=` applies if the app creates the topic",
    "Agent.ask": "for pages, tasks and programs; inside agents it is refused",
    "Agent.test_context": "tables and topics are those of the test; `sent` has what was sent",
    "Channel.put": "processed before the next record, and undone if the current record fails",
    "Event.ack": "records are acknowledged when their batch commits",
    "Event.acked": "records are acknowledged when their batch commits",
    "Stream.__and__": "`stream & topic`, evaluated when the program is built, so it must come before the loop",
    "Stream.combine": "takes topics",
    "Stream.enumerate": "counts from the beginning of a batch",
    "Stream.group_by": "spreads the agent; evaluated when the program is built, so it must come before the loop",
    "Stream.noack_take": "as `take`",
    "Stream.take": "a list ends with the batch at the latest",
    "Stream.take_events": "a list ends with the batch at the latest",
    "Stream.take_with_timestamp": "a list ends with the batch at the latest",
    "Stream.through": "evaluated when the program is built, so it must come before the loop",
    "Topic.send": "returns topic, partition and offset; those of a send by an agent are not known before its batch "
    "commits; `partition=` is not supported: the key determines it",
    "Topic.send_soon": "`partition=` is not supported: the key determines it",
    "App.flow_control": "`resume` is accepted, `suspend` is refused",
    "App.log": "a call opens the log of records",
    "types.RecordMetadata": "the result of a send",
    "modules.exceptions": "names of Faust for the errors of Potok",
    "Topic.stream": "the topic itself, for `stream & topic.stream()`",
    "Table.on_window_close": "called with `((key, (start, end)), value)`, when a window has expired",
    "Table.is_global": "always true",
    "WindowWrapper.items": "all windows, under `(key, (start, end))`",
    "WindowWrapper.values": "of all windows",
    "WindowSet.value": "attributes and arithmetic of a window set apply to this value",
    "Record.from_data": "types are always checked; dates and decimals are always read",
    "Record.asdict": "records in it are plain data too",
    "Record.to_representation": "always with the namespace; topics contain it only with `include_metadata=True`",
    "faust.GSSAPICredentials": "rejected if Kafka's client was built without Kerberos, as on PyPI",
    "faust.current_event": "raises if there is no current record",
    "faust.Codec": "`pickle` is rejected, because unpickling bytes of a topic can run code",
    "AgentTestWrapper.put": "raises what the agent raises",
    "serializers.codecs.get_codec": "`json`, `raw`, `binary`, and registered codecs; `a|b` chains",
    "View.error": "additional keywords become fields of the response",
    "cli.Command": "as `AppCommand`",
    "commands.send": "to a topic, or to an `@agent`; prints the position of the record",
    "commands.worker": "`-l`, `--web-port`, `--web-bind`, `--without-web`, `--broker`, and `--until-end`",
    "commands.reset": "deletes the offsets and tables of the app; its topics are kept",
}

_CONTEXT = "a client certificate cannot be read from a context: ssl.certificate.location in potok.toml"
_SETTINGS = {
    "consumer_auto_offset_reset": "for an app that never ran",
    "broker_credentials": _CONTEXT,
    "ssl_context": _CONTEXT,
}


@dataclass(frozen=True, slots=True)
class Row:
    """A name, what it is here, and what differs."""

    name: str
    here: str
    differs: str = ""


def holders() -> dict[str, Any]:
    """For each group of names, something that has them."""
    app = faust.App("coming-from-faust")
    table = app.Table("table")
    found: dict[str, Any] = {
        "faust": faust,
        "types": faust.types,
        "App": app,
        "Signal": Signal,
        "Topic": app.topic("topic"),
        "Channel": app.channel(),
        "Stream": faust.Stream,
        "Event": faust.Event,
        "Message": Message,
        "Agent": app.agent("topic")(_nothing),
        "Table": table,
        "WindowWrapper": app.Table("windows").tumbling(60),
        "WindowSet": WindowSet,
        "Record": faust.Record,
        "models.FieldDescriptor": faust.FieldDescriptor(),
        "models.fields": faust.models.fields,
        "Schema": faust.Schema,
        "serializers.codecs": faust.serializers.codecs,
        "Service": faust.Service(),
        "web": faust.web,
        "View": faust.View,
        "cli": faust.cli,
        "modules": _MODULES,
        "commands": _command_names(app),
    }
    found["AgentTestWrapper"] = AgentTest(found["Agent"])
    assert isinstance(found["WindowWrapper"], WindowedTable)
    app.build()
    return found


def _command_names(app: faust.App) -> tuple[str, ...]:
    actions = [action for action in parser_of(app)._actions if isinstance(action, argparse._SubParsersAction)]
    return tuple(name for action in actions for name in action.choices)


async def _nothing(stream: Any) -> None:
    async for _ in stream:
        pass


def is_there(holder: Any, name: str) -> bool:
    """Whether a name means something here; one that is refused is not there."""
    if isinstance(holder, tuple):
        return name in holder
    try:
        return hasattr(holder, name)
    except CannotImport:
        return False


def rows() -> Iterator[Row]:
    """All names, group by group."""
    found = holders()
    for group, names in NAMES.items():
        refused = REFUSED.get("WindowedTable" if group == "WindowWrapper" else group, {})
        for name in names:
            whole = f"{group}.{name}"
            if is_there(found[group], name):
                yield Row(whole, SAME, DIFFERS.get(whole, ""))
            else:
                yield Row(whole, "not supported", refused[name])
    for name in sorted(APP):
        yield Row(f"App({name}=)", *_setting(name))


def _setting(name: str) -> tuple[str, str]:
    if name in _SETTINGS:
        return SAME, _SETTINGS[name]
    return (SAME, "") if name in USED else ("accepted", "has no effect, and the log says so")


def table() -> str:
    """The table of the docs: names that are alike in one row."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for row in rows():
        group = row.name.rpartition(".")[0] if "=" not in row.name else "App()"
        together.setdefault((group, row.here, row.differs), []).append(f"`{_rendered(row.name)}`")
    lines = ["| Faust | here | what differs, or what to do instead |", "|---|---|---|"]
    lines += [
        f"| {', '.join(names)} | {here} | {differs.replace('|', '&#124;')} |"
        for (_, here, differs), names in together.items()
    ]
    return "\n".join(lines)


def _rendered(name: str) -> str:
    group, _, member = name.rpartition(".")
    if name.startswith("modules."):
        return f"faust.{name.removeprefix('modules.')}"
    if group == "App":
        return f"app.{member}"
    return f"faust {member}" if group == "commands" else name.replace("__and__", "&")


if __name__ == "__main__":
    print(table())
