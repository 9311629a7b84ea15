"""The SQL of one sink table."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from potok.sinks.postgres.columns import sql_type
from potok.sinks.table_columns import TableColumn

Connection = psycopg.Connection[tuple[object, ...]]

NUMBER, GONE, ROWS = sql.Identifier("potok_n"), sql.Identifier("potok_gone"), sql.Identifier("potok_rows")

_LOCK = 7_074_107
"""An arbitrary lock number, held while tables are checked and created, to serialize creation."""


class Statements:
    """Writes rows into a table: copied into a temporary table first, and moved from there."""

    def __init__(self, table: str, columns: Sequence[TableColumn]) -> None:
        self._columns = columns
        self._table = sql.Identifier(*table.split("."))
        names = [sql.Identifier(column.name) for column in columns]
        keys = [sql.Identifier(column.name) for column in columns if column.is_key]
        values = [sql.Identifier(column.name) for column in columns if not column.is_key]
        parts = {
            "table": self._table,
            "rows": ROWS,
            "n": NUMBER,
            "gone": GONE,
            "names": _listed(names),
            "keys": _listed(keys),
            "same": sql.SQL(" AND ").join(sql.SQL("{t}.{k} = last.{k}").format(t=self._table, k=key) for key in keys),
            "change": _change(values),
        }
        last = sql.SQL("(SELECT DISTINCT ON ({keys}) * FROM {rows} ORDER BY {keys}, {n} DESC) AS last")
        parts["last"] = last.format(**parts)
        self._stage = sql.SQL(
            "CREATE TEMP TABLE IF NOT EXISTS {rows} ON COMMIT DELETE ROWS AS "
            "SELECT 0::bigint AS {n}, false AS {gone}, {names} FROM {table} WITH NO DATA"
        ).format(**parts)
        self._copy = sql.SQL("COPY {rows} FROM STDIN (FORMAT csv)").format(**parts)
        self._empty = sql.SQL("TRUNCATE {rows}").format(**parts)
        self._delete = sql.SQL("DELETE FROM {table} USING {last} WHERE last.{gone} AND {same}").format(**parts)
        self._insert = sql.SQL(
            "INSERT INTO {table} ({names}) SELECT {names} FROM {last} WHERE NOT last.{gone} "
            "ON CONFLICT ({keys}) {change}"
        ).format(**parts)
        self._unique = sql.SQL("CREATE UNIQUE INDEX ON {table} ({keys})").format(**parts)

    @property
    def table_name(self) -> str:
        return self._table.as_string(None)

    @property
    def unique_index(self) -> str:
        return self._unique.as_string(None)

    def create_table(self, connection: Connection) -> str | None:
        """Create the table if it does not exist; otherwise return the statement that adds a missing column, if any."""
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        declared = [
            sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(sql_type(column))) for column in self._columns
        ]
        keys = _listed([sql.Identifier(column.name) for column in self._columns if column.is_key])
        name = self._table.as_string(connection)
        if connection.execute("SELECT to_regclass(%s)", (name,)).fetchone() == (None,):
            # Checked first, because even IF NOT EXISTS requires the right to create.
            table = sql.SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}))").format(self._table, _listed(declared), keys)
            connection.execute(table)
        found = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            (name,),
        )
        there = {name for (name,) in found}
        for column, text in zip(self._columns, declared, strict=True):
            if column.name not in there:
                return sql.SQL("ALTER TABLE {} ADD COLUMN {}").format(self._table, text).as_string(connection)
        return None

    def check(self, connection: Connection) -> None:
        """Raise the errors of the statements before there are records."""
        connection.execute(self._stage)
        connection.execute(sql.SQL("EXPLAIN ") + self._insert)
        connection.execute(sql.SQL("EXPLAIN ") + self._delete)

    def put(self, connection: Connection, data: bytes) -> None:
        connection.execute(self._stage)
        connection.execute(self._empty)
        with connection.cursor() as cursor, cursor.copy(self._copy) as copy:
            copy.write(data)
        connection.execute(self._delete)
        connection.execute(self._insert)


def _listed(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _change(values: Sequence[sql.Identifier]) -> sql.Composable:
    if not values:
        return sql.SQL("DO NOTHING")
    changes = [sql.SQL("{v} = EXCLUDED.{v}").format(v=value) for value in values]
    return sql.SQL("DO UPDATE SET ") + _listed(changes)
