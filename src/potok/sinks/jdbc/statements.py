"""The SQL of one table, in the dialect of its database."""

from __future__ import annotations

from collections.abc import Sequence

NUMBER, THERE = "potok_n", "potok_there"
"""Columns of the staged rows: the number of the record in its batch, and 1 if it has a value."""

FENCES = "potok_jdbc_fences"

_WITHOUT_MERGE = ("MySQL", "MariaDB")
_TYPES = {
    "PostgreSQL": ("BIGINT", "TEXT"),
    "MySQL": ("BIGINT", "MEDIUMTEXT"),
    "MariaDB": ("BIGINT", "MEDIUMTEXT"),
    "Oracle": ("NUMBER(19)", "CLOB"),
    "Microsoft SQL Server": ("BIGINT", "VARCHAR(MAX)"),
}
_DEFAULT_TYPES = ("BIGINT", "CLOB")


class JdbcStatements:
    """Moves staged rows into a table: all rows whose numbers are in a range."""

    def __init__(
        self, product: str, quote: str, table: str, staging: str, columns: Sequence[str], keys: Sequence[str]
    ) -> None:
        self._product, self._quote = product, quote.strip()
        self.table = ".".join(self.quoted(part) for part in table.split("."))
        self._schema = [self.quoted(part) for part in table.split(".")[:-1]]
        self.staging = self.beside(staging)
        self._columns = [self.quoted(name) for name in columns]
        self._keys = [self.quoted(name) for name in keys]
        self._range = f"s.{self.quoted(NUMBER)} >= ? AND s.{self.quoted(NUMBER)} < ?"
        self.put = [self._delete(), *self._upsert()] if keys else [self._insert("")]
        self.check = f"SELECT {', '.join(self._columns)} FROM {self.table} WHERE 1 = 0"

    def quoted(self, name: str) -> str:
        mark = self._quote
        return f"{mark}{name.replace(mark, mark * 2)}{mark}" if mark else name

    def beside(self, name: str) -> str:
        """Return the name of a table in the schema of this one."""
        return ".".join([*self._schema, self.quoted(name)])

    @property
    def primary_key(self) -> str:
        return f"ALTER TABLE {self.table} ADD PRIMARY KEY ({', '.join(self._keys)})"

    @property
    def create_fences(self) -> str:
        number, text = _TYPES.get(self._product, _DEFAULT_TYPES)
        return (
            f"CREATE TABLE {FENCES} (query_name VARCHAR(200) NOT NULL, step_name VARCHAR(200) NOT NULL, "
            f"epoch {number} NOT NULL, batch {number} NOT NULL, digest VARCHAR(64), refused {text}, "
            "PRIMARY KEY (query_name, step_name))"
        )

    def _delete(self) -> str:
        same = " AND ".join(f"s.{key} = {self.table}.{key}" for key in self._keys)
        gone = f"s.{self.quoted(THERE)} = 0 AND {self._range}"
        return f"DELETE FROM {self.table} WHERE EXISTS (SELECT 1 FROM {self.staging} s WHERE {same} AND {gone})"

    def _insert(self, more: str) -> str:
        there = f"s.{self.quoted(THERE)} = 1 AND {self._range}"
        values = ", ".join(f"s.{name}" for name in self._columns)
        into = f"INSERT INTO {self.table} ({', '.join(self._columns)})"
        return f"{into} SELECT {values} FROM {self.staging} s WHERE {there}{more}"

    def _upsert(self) -> list[str]:
        rest = [name for name in self._columns if name not in self._keys]
        if self._product in _WITHOUT_MERGE:
            return self._update_and_insert(rest)
        if self._product == "PostgreSQL":
            changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in rest)
            action = f"DO UPDATE SET {changes}" if rest else "DO NOTHING"
            return [self._insert(f" ON CONFLICT ({', '.join(self._keys)}) {action}")]
        return [self._merge(rest)]

    def _update_and_insert(self, rest: Sequence[str]) -> list[str]:
        """Return statements of MySQL, whose ON DUPLICATE KEY overwrites a row that is equal in any unique column."""
        same = " AND ".join(f"t.{key} = s.{key}" for key in self._keys)
        there = f"s.{self.quoted(THERE)} = 1 AND {self._range}"
        changes = ", ".join(f"t.{name} = s.{name}" for name in rest)
        update = f"UPDATE {self.table} t JOIN {self.staging} s ON {same} SET {changes} WHERE {there}"
        insert = self._insert(f" AND NOT EXISTS (SELECT 1 FROM {self.table} t WHERE {same})")
        return [update, insert] if rest else [insert]

    def _merge(self, rest: Sequence[str]) -> str:
        """Return the statement of the standard, which Oracle, SQL Server, Db2, Derby and H2 have."""
        same = " AND ".join(f"t.{key} = p.{key}" for key in self._keys)
        there = f"s.{self.quoted(THERE)} = 1 AND {self._range}"
        names = ", ".join(self._columns)
        source = f"(SELECT {', '.join(f's.{name}' for name in self._columns)} FROM {self.staging} s WHERE {there}) p"
        changes = ", ".join(f"{name} = p.{name}" for name in rest)
        update = f" WHEN MATCHED THEN UPDATE SET {changes}" if rest else ""
        values = ", ".join(f"p.{name}" for name in self._columns)
        end = ";" if self._product == "Microsoft SQL Server" else ""
        return (
            f"MERGE INTO {self.table} t USING {source} ON ({same}){update} "
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values}){end}"
        )
