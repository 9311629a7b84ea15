"""The stream over the processing log, which exists without a statement, as in ksqlDB."""

from __future__ import annotations

from potok.log.broker import Broker
from potok.runtime.output.processing_log import PROCESSING_LOG, make_log
from potok.sql.catalog import Source, SourceColumn
from potok.sql.syntax import ast
from potok.sql.syntax.walk import walk
from potok.sql.types import BIGINT, INT, VARCHAR

LOG_STREAM = Source(
    "KSQL_PROCESSING_LOG",
    is_table=False,
    columns=(
        SourceColumn("QUERY_ID", VARCHAR, is_key=True),
        SourceColumn("TIME", BIGINT),
        SourceColumn("EXPRESSION", VARCHAR),
        SourceColumn("MESSAGE", VARCHAR),
        SourceColumn("SOURCE_TOPIC", VARCHAR),
        SourceColumn("SOURCE_PARTITION", INT),
        SourceColumn("SOURCE_OFFSET", BIGINT),
        SourceColumn("FAILURES", BIGINT),
    ),
    topic=PROCESSING_LOG,
    key_format="kafka",
    value_format="sql_json",
    read_only=True,
    partitions=1,
)


def make_log_if_read(broker: Broker, statement: ast.Node) -> None:
    """Create the topic of the log for a statement that reads it, in case nothing has failed yet."""
    if any(isinstance(part, ast.Relation) and part.name == LOG_STREAM.name for part in walk(statement)):
        make_log(broker)


def failure_messages(failures: dict[str, int]) -> str:
    """Format failures by count, the most frequent first; "none" if there are none."""
    counted = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{expression}: {count}" for expression, count in counted) or "none"
