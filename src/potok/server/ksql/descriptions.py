"""Descriptions of sources, queries, topics and functions in the format of ksqlDB."""

from __future__ import annotations

from typing import Any

from potok.server.ksql.json_rows import schema_tree
from potok.sql.catalog import Source, SourceColumn
from potok.sql.functions.result_types import arguments_of
from potok.statements.connectors import WORKER, ConnectorInfo
from potok.statements.database import Database
from potok.statements.inspect.sources import show_format
from potok.statements.queries.runner import QueryInfo
from potok.statements.results import Row, Rows
from potok.topology.describe import as_text, description_of

Description = dict[str, Any]


def source_line(source: Source) -> Description:
    """Describe a row of SHOW STREAMS or SHOW TABLES."""
    return {
        "type": source.kind,
        "name": source.name,
        "topic": source.topic,
        "keyFormat": _plain_format(source.key_format),
        "valueFormat": _plain_format(source.value_format),
        "isWindowed": source.window is not None,
    }


def _plain_format(format_: str) -> str:
    return show_format(format_).partition(" ")[0]


def source_description(source: Source, database: Database, *, extended: bool) -> Description:
    catalog_state, known = database.catalog_state(), {info.query_id: info for info in database.queries()}
    readers = [known[name] for name in catalog_state.readers(source) if name in known and name != source.query]
    writers = [known[name] for name in catalog_state.writers(source) if name in known]
    there = database.broker.has_topic(source.topic)
    return {
        "name": source.name,
        "windowType": None if source.window is None else source.window.kind,
        "readQueries": [running_query(info) for info in readers],
        "writeQueries": [running_query(info) for info in writers],
        "fields": [_field(column) for column in source.columns],
        "type": source.kind,
        "timestamp": source.timestamp,
        "statistics": _statistics(source, database) if extended and there else "",
        "errorStats": "",
        "statisticsMap": {},
        "errorStatsMap": {},
        "extended": extended,
        "keyFormat": _plain_format(source.key_format),
        "valueFormat": _plain_format(source.value_format),
        "topic": source.topic,
        "partitions": database.broker.partitions(source.topic) if there else 0,
        "replication": 1 if there else 0,
        "statement": source.statement,
        "queryOffsetSummaries": [],
        "sourceConstraints": _constraints(source, database),
    }


def _statistics(source: Source, database: Database) -> str:
    (topic,) = database.broker.describe_topics([source.topic])
    return f"records: {topic.records}" if topic.exact else f"records: at most {topic.records}"


def _constraints(source: Source, database: Database) -> list[str]:
    """Return the sources derived from this one, which prevent dropping it."""
    readers = set(database.catalog_state().readers(source)) - {source.query, source.table_of}
    return sorted(other.name for other in database.catalog.sources.values() if other.query in readers)


def _field(column: SourceColumn) -> Description:
    description: Description = {"name": column.name, "schema": schema_tree(column.type)}
    if column.header is not None:
        description["type"] = "HEADER"
        if column.header:
            description["headerKey"] = column.header
    elif column.is_key:
        description["type"] = "KEY"
    return description


def running_query(info: QueryInfo) -> Description:
    state = state_of(info)
    return {
        "queryString": info.text,
        "sinks": [info.source] if info.kind != "SOURCE TABLE" else [],
        "sinkKafkaTopics": list(info.writes),
        "id": info.query_id,
        "statusCount": {state: 1},
        "queryType": "PERSISTENT",
        "state": state,
    }


def state_of(info: QueryInfo) -> str:
    """Return RUNNING, PAUSED, ERROR or UNRESPONSIVE. As in ksqlDB, a query that waits for a broker is running."""
    return {"STOPPED": "UNRESPONSIVE", "WAITING": "RUNNING"}.get(info.state, info.state)


def query_description(result: Rows | None, database: Database, info: QueryInfo | None = None) -> Description:
    """Describe a running query, or the one that a statement would start."""
    details = dict(result.details) if result is not None else {}
    known = {query.query_id: query for query in database.queries()}
    info = info or known.get(str(details.get("ID", "")))
    if info is None:
        plan = str(details.get("Execution plan") or _steps(result))
        reads = [topic for topic in str(details.get("Reads topics", "")).split(", ") if topic]
        return _query(str(details.get("Statement", "")), _names(reads, database), plan)
    wanted = database.catalog_state().queries[info.query_id]
    plan = as_text(description_of(wanted.topology))
    source = database.catalog.sources.get(info.source)
    return {
        **_query(info.text, _names(info.reads, database), plan),
        "id": info.query_id,
        "windowType": None if source is None or source.window is None else source.window.kind,
        "fields": [] if source is None else [_field(column) for column in source.columns],
        "sinks": [info.source],
        "ksqlHostQueryStatus": {"potok": state_of(info)},
        "queryType": "PERSISTENT",
        "queryErrors": [{"type": "UNKNOWN", "errorMessage": info.error}] if info.error else [],
        "state": state_of(info),
    }


def _query(text: str, sources: list[str], plan: str) -> Description:
    """Describe a query that is not running."""
    return {
        "id": "",
        "statementText": text,
        "windowType": None,
        "fields": [],
        "sources": sources,
        "sinks": [],
        "topology": plan,
        "executionPlan": plan,
        "overriddenProperties": {},
        "ksqlHostQueryStatus": {},
        "queryType": "PUSH",
        "queryErrors": [],
        "state": None,
    }


def _names(topics: Any, database: Database) -> list[str]:
    return sorted(source.name for source in database.catalog.readers(topics))


def _steps(result: Rows | None) -> str:
    rows = () if result is None else result.rows
    return "\n".join("  ".join(str(part) for part in row if part) for row in rows)


def topic_line(row: Row, database: Database, extended: bool) -> Description:
    name, partitions = row[0], row[1]
    description: Description = {"name": name, "replicaInfo": [1] * int(partitions)}
    if extended:
        groups = [group for group in database.broker.groups() if database.broker.committed(group, name)]
        description |= {"consumerCount": 0, "consumerGroupCount": len(groups)}
    return description


def _arguments(signature: str) -> list[Description]:
    return [
        {"name": one.name, "type": one.type, "description": "optional" * one.optional, "isVariadic": one.variadic}
        for one in arguments_of(signature)
    ]


def functions_of(result: Rows) -> Description:
    details = dict(result.details)
    overview = str(details.get("Overview", ""))
    signatures = [
        {"arguments": _arguments(row[0]), "returnType": row[1], "description": overview, "signature": row[0]}
        for row in result.rows
    ]
    return {
        "name": details.get("Name", ""),
        "description": details.get("Overview", ""),
        "author": details.get("Defined by", ""),
        "version": "",
        "path": "internal",
        "functions": signatures,
        "type": details.get("Type", ""),
    }


def connector_info(info: ConnectorInfo) -> Description:
    """Describe a connector that was created, as Kafka Connect does."""
    tasks = [{"connector": info.name, "task": 0}]
    return {"name": info.name, "config": {"name": info.name, **info.config}, "tasks": tasks, "type": "source"}


def connector_line(info: ConnectorInfo, state: str) -> Description:
    """Describe a row of SHOW CONNECTORS."""
    return {"name": info.name, "type": "source", "className": info.class_name, "state": state}


def connector_description(info: ConnectorInfo, database: Database) -> Description:
    task = {"id": 0, "state": info.state, "worker_id": WORKER, "trace": info.error}
    status = {
        "name": info.name,
        "connector": {"state": info.state, "worker_id": WORKER, "trace": info.error},
        "tasks": [task],
        "type": "source",
    }
    sources = [source_description(each, database, extended=False) for each in database.catalog.readers(info.topics)]
    return {
        "connectorClass": info.class_name,
        "status": status,
        "sources": sources,
        "topics": list(info.topics),
    }
