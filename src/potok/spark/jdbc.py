"""JDBC in the JVM of the driver: transactions through py4j, rows in bulk through Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from potok.errors import SetupError
from potok.log.kafka.development.jars import Bundle, Module, fetch
from potok.settings import Settings
from potok.sinks.spark_access import JdbcAddress, JdbcError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COORDINATES = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)")

_TRANSIENT_STATES = ("08", "40", "53", "57", "58")
"""Classes of SQLSTATE: no connection, a deadlock, no resources, an operator shuts the server down, its system."""

_TRANSIENT_CLASSES = ("java.sql.SQLTransientException", "java.sql.SQLRecoverableException")


class DriverNotFound(SetupError):
    """A JDBC driver that is not on the class path."""

    def __init__(self, driver: str) -> None:
        super().__init__(
            f"Spark's JVM has no JDBC driver {driver}",
            hint='pass jar=, a file or an artifact such as "org.postgresql:postgresql:42.7.14"; or set spark.jars',
        )


class SparkJdbcConnection:
    """A connection without autocommit."""

    def __init__(self, session: SparkSession, address: JdbcAddress) -> None:
        self._session, self._address = session, address
        self._jvm: Any = session._jvm
        self._loader = _loader(session, address)
        with _jdbc_errors():
            self._connection = self._opened()
            self._connection.setAutoCommit(False)
            about = self._connection.getMetaData()
            self.product, self.quote = str(about.getDatabaseProductName()), str(about.getIdentifierQuoteString())

    def _opened(self) -> Any:
        properties = self._jvm.java.util.Properties()
        for name, value in self._address.properties.items():
            properties.setProperty(name, value)
        try:
            driver: Any = self._loader.loadClass(self._address.driver)
        except Py4JJavaError as error:
            raise DriverNotFound(self._address.driver) from error
        gateway: Any = self._session.sparkContext._gateway
        none = gateway.new_array(self._jvm.java.lang.Class, 0), gateway.new_array(self._jvm.java.lang.Object, 0)
        connection = driver.getDeclaredConstructor(none[0]).newInstance(none[1]).connect(self._address.url, properties)
        if connection is None:
            raise JdbcError("08001", f"the driver {self._address.driver} does not accept the URL")
        return connection

    def run(self, statement: str, *values: object) -> int:
        with _jdbc_errors():
            prepared = self._prepared(statement, values)
            try:
                return int(prepared.executeUpdate())
            finally:
                prepared.close()

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with _jdbc_errors():
            prepared = self._prepared(query, values)
            try:
                found = prepared.executeQuery()
                width = found.getMetaData().getColumnCount()
                rows = []
                while found.next():
                    rows.append(tuple(found.getString(number + 1) for number in range(width)))
                return rows
            finally:
                prepared.close()

    def _prepared(self, statement: str, values: tuple[object, ...]) -> Any:
        prepared = self._connection.prepareStatement(statement)
        for number, value in enumerate(values, 1):
            if isinstance(value, int):
                prepared.setLong(number, value)
            else:
                prepared.setString(number, str(value))
        return prepared

    def replace_table(self, table: str, rows: pa.Table) -> None:
        self._write(table, rows, "overwrite", "")

    def create_table(self, table: str, empty: pa.Table, types: str) -> None:
        self._write(table, empty, "ignore", types)

    def _write(self, table: str, rows: pa.Table, mode: str, types: str) -> None:
        options = {**self._address.properties, "driver": self._address.driver}
        if self.product == "PostgreSQL":
            options = {"reWriteBatchedInserts": "true", **options}
        if types:
            options["createTableColumnTypes"] = types
        # Spark looks for the driver with the class loader of the thread.
        self._jvm.java.lang.Thread.currentThread().setContextClassLoader(self._loader)
        with _jdbc_errors():
            frame = self._session.createDataFrame(rows)
            frame.write.jdbc(_spark_url(self._address.url), table, mode=mode, properties=options)

    def tables(self, schema: str, prefix: str) -> list[str]:
        with _jdbc_errors():
            found = self._connection.getMetaData().getTables(None, schema or None, f"{prefix}%", None)
            names = []
            while found.next():
                names.append(str(found.getString("TABLE_NAME")))
            return names

    def discard_table(self, table: str) -> None:
        try:
            self._connection.rollback()
            self.run(f"DROP TABLE {table}")
            self._connection.commit()
        except (JdbcError, Py4JError):
            return  # It does not exist, or the connection is broken, or the JVM is gone.

    def savepoint(self) -> Any:
        with _jdbc_errors():
            return self._connection.setSavepoint()

    def rollback(self, savepoint: Any = None) -> None:
        with _jdbc_errors():
            if savepoint is None:
                self._connection.rollback()
            else:
                self._connection.rollback(savepoint)

    def commit(self) -> None:
        with _jdbc_errors():
            self._connection.commit()

    def close(self) -> None:
        try:
            self._connection.close()
        except Py4JError:
            return  # It is broken, or the JVM is gone.


def _spark_url(url: str) -> str:
    """Return the URL that makes Spark write the dialect of the database: it knows MariaDB as MySQL."""
    if not url.startswith("jdbc:mariadb:"):
        return url
    return f"{url.replace('jdbc:mariadb:', 'jdbc:mysql:', 1)}{'&' if '?' in url else '?'}permitMysqlScheme"


def _loader(session: SparkSession, address: JdbcAddress) -> Any:
    """Return the class loader that has the driver, after adding its jar to the session."""
    loader: Any = session._jsparkSession.sharedState().jarClassLoader()
    if address.jar:
        try:
            loader.loadClass(address.driver)
        except Py4JJavaError:
            session.sql(f"ADD JAR '{_file(address.jar)}'").collect()
    return loader


def _file(jar: str) -> str:
    """Return the file of a jar, which is fetched from Maven Central if it is named by its coordinates."""
    found = _COORDINATES.fullmatch(jar)
    if found is None:
        return jar
    group, name, version = found.groups()
    bundle = Bundle(f"the JDBC driver {name}", f"jdbc-{name}-{version}", (Module(group, name, version, alone=True),))
    return str(fetch(bundle, Settings.load().cache_path)[0])


@contextmanager
def _jdbc_errors() -> Iterator[None]:
    """Raise errors of the driver as `JdbcError`."""
    try:
        yield
    except Py4JJavaError as error:
        raise _jdbc_error(error.java_exception) from error
    except PySparkException as error:
        origin = getattr(error, "_origin", None)
        if origin is None:
            raise JdbcError("", str(error)) from error
        raise _jdbc_error(origin) from error


def _jdbc_error(error: Any) -> JdbcError:
    """Return the innermost error of SQL, or the error itself."""
    found, transient, state = error, False, ""
    cause = error
    while cause is not None:
        kinds = _class_names(cause)
        if "java.sql.SQLException" in kinds:
            found, state = cause, str(cause.getSQLState() or "")
            transient = bool(kinds.intersection(_TRANSIENT_CLASSES)) or state.startswith(_TRANSIENT_STATES)
        cause = cause.getCause()
    lines = str(found.getMessage() or found.toString()).strip().splitlines()
    return JdbcError(state, " ".join(line.strip() for line in lines), transient=transient)


def _class_names(error: Any) -> set[str]:
    names, kind = set(), error.getClass()
    while kind is not None:
        names.add(str(kind.getName()))
        kind = kind.getSuperclass()
    return names
