"""Parsed statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from potok.sql.errors import SourceLocation
from potok.sql.syntax.ast.expressions import Expression, Node, TypeName
from potok.sql.syntax.ast.queries import Select


@dataclass(frozen=True, slots=True)
class Property(Node):
    """A property of WITH (...): `at` is the position of its name, which is in upper case."""

    name: str
    value: bool | int | Decimal | float | str | None
    value_at: SourceLocation = field(compare=False, kw_only=True)


Properties = tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    """A column of CREATE STREAM or TABLE. `role` is "", KEY, PRIMARY KEY, HEADERS or HEADER('name')."""

    name: str
    type: TypeName
    role: str = ""
    header: str = ""


@dataclass(frozen=True, slots=True)
class CreateSource(Node):
    """CREATE STREAM or TABLE with columns."""

    is_table: bool
    name: str
    columns: tuple[ColumnDefinition, ...]
    properties: Properties
    or_replace: bool = False
    if_not_exists: bool = False
    read_only: bool = False
    """CREATE SOURCE ...: read-only, and a source table is materialized for pull queries."""


@dataclass(frozen=True, slots=True)
class CreateAs(Node):
    """CREATE STREAM or TABLE ... AS SELECT."""

    is_table: bool
    name: str
    query: Select
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateType(Node):
    name: str
    type: TypeName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateConnector(Node):
    """CREATE SOURCE CONNECTOR."""

    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSource(Node):
    is_table: bool
    name: str
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class Drop(Node):
    """DROP STREAM, TABLE, TYPE or CONNECTOR."""

    kind: str
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class InsertValues(Node):
    """INSERT INTO ... VALUES. Without `columns`, the values are for all columns in order."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class InsertSelect(Node):
    name: str
    query: Select
    properties: Properties = ()
    """WITH (QUERY_ID = '...')."""


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A SELECT on its own: a pull query, or with EMIT a push query."""

    query: Select


@dataclass(frozen=True, slots=True)
class Show(Node):
    """SHOW or LIST. `what` is STREAMS, TABLES, TOPICS, ALL TOPICS, QUERIES, FUNCTIONS, TYPES, VARIABLES, PROPERTIES,
    CONNECTORS, SOURCE CONNECTORS or SINK CONNECTORS."""

    what: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Describe(Node):
    """DESCRIBE x [EXTENDED]; DESCRIBE STREAMS|TABLES has the name "" and the kind."""

    name: str
    kind: str = ""
    """"", FUNCTION, CONNECTOR, STREAMS or TABLES."""
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Explain(Node):
    """EXPLAIN of a statement, or of a query by its id."""

    statement: Statement | None
    query_id: str = ""


@dataclass(frozen=True, slots=True)
class Print(Node):
    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Steer(Node):
    """TERMINATE, PAUSE or RESUME one query, or ALL."""

    action: str
    query_id: str


@dataclass(frozen=True, slots=True)
class SetProperty(Node):
    """SET 'name' = 'value'; UNSET has no value."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Define(Node):
    """DEFINE name = 'value'; UNDEFINE has no value."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class RunScript(Node):
    path: str


@dataclass(frozen=True, slots=True)
class AssertTopic(Node):
    topic: str
    properties: Properties = ()
    timeout_ms: int | None = None
    exists: bool = True


Statement = (
    CreateSource
    | CreateAs
    | CreateType
    | CreateConnector
    | AlterSource
    | Drop
    | InsertValues
    | InsertSelect
    | Query
    | Show
    | Describe
    | Explain
    | Print
    | Steer
    | SetProperty
    | Define
    | RunScript
    | AssertTopic
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """One statement of a script, with the text that it was parsed from (variables replaced)."""

    statement: Statement
    text: str
    at: SourceLocation

    @property
    def in_script(self) -> str:
        """The text, padded so that the positions of errors count from the start of the script."""
        return "\n" * (self.at.line - 1) + " " * (self.at.column - 1) + self.text
