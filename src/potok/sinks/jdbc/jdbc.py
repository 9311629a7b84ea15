"""Append rows to a table of a database with a JDBC driver, or maintain its rows by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from potok.errors import TopologyError
from potok.records.formats.json.encode import encode_typed
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.spark_access import JdbcAddress, SparkNeeded
from potok.sinks.typed_rows import RowShape
from potok.sinks.urls import address_of

DRIVERS = {
    "postgresql": ("org.postgresql.Driver", "org.postgresql:postgresql:42.7.14"),
    "mariadb": ("org.mariadb.jdbc.Driver", "org.mariadb.jdbc:mariadb-java-client:3.5.6"),
    "mysql": ("com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j:9.5.0"),
    "sqlserver": ("com.microsoft.sqlserver.jdbc.SQLServerDriver", "com.microsoft.sqlserver:mssql-jdbc:13.2.1.jre11"),
    "oracle": ("oracle.jdbc.OracleDriver", "com.oracle.database.jdbc:ojdbc11:23.9.0.25.07"),
}
"""Driver and artifact of Maven Central, by the second part of the URL."""


@dataclass(frozen=True, slots=True)
class JdbcTarget(SinkSpec):
    """A table. URL and properties may contain a password and are not shown."""

    verb: ClassVar[str] = "to_jdbc"

    url: str = field(repr=False)
    table: str
    shape: RowShape
    driver: str
    jar: str
    properties: tuple[tuple[str, str], ...] = field(repr=False)
    give_up_after_ms: int | None

    @property
    def label(self) -> str:
        url = self.url.removeprefix("jdbc:")
        if self._kind == "sqlserver":
            # Its options, such as the password, come after semicolons.
            url = url.partition(";")[0]
        return f'table "{self.table}" at {address_of(url)}'

    @property
    def address(self) -> JdbcAddress:
        driver, jar = DRIVERS.get(self._kind, ("", ""))
        chosen = self.jar or ("" if self.driver else jar)
        return JdbcAddress(self.url, self.driver or driver, chosen, dict(self.properties))

    @property
    def _kind(self) -> str:
        return self.url.removeprefix("jdbc:").partition(":")[0]

    def check(self, types: Types, guarantee: Guarantee) -> None:
        if not self.url.startswith("jdbc:"):
            raise TopologyError("this is not a JDBC URL", hint='write "jdbc:postgresql://localhost/shop?user=app"')
        if not self.address.driver:
            known = ", ".join(DRIVERS)
            hint = f"pass driver=, the name of its class, and jar=; they are known for {known}"
            raise TopologyError(f'no driver is known for "jdbc:{self._kind}:"', hint=hint)
        if not all(self.table.split(".")) or self.table.count(".") > 2:
            raise TopologyError(f'"{self.table}" is not a table', hint='write "orders", or "shop.orders" with a schema')
        self.shape.check(types)

    def columns(self, types: Types) -> pa.Schema:
        """Return the columns; values that have no type in SQL are JSON text."""
        return pa.schema([field.with_type(_stored(field.type)) for field in self.shape.schema(types)])

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        found = self.shape.prepare(rows, types)
        assert not isinstance(found.value, list)
        names = [field.name for field in found.value.type]
        columns = [_sql_values(column) for column in found.value.flatten()]
        return Prepared(found.key, pa.StructArray.from_arrays(columns, names=names), found.failures)

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.jdbc.writer import JdbcWriter

        if opening.spark is None:
            raise SparkNeeded(opening.step, self.verb)
        return JdbcWriter(self, opening, opening.spark)


def _stored(type_: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_nested(type_) or pa.types.is_time(type_) else type_


def _sql_values(column: pa.Array) -> pa.Array:
    if pa.types.is_nested(column.type):
        return encode_typed(column).cast(pa.string())
    return column.cast(_stored(column.type))
