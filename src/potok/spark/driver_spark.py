"""Spark for sinks that write through it: the session of the driver process, and JDBC in its JVM."""

from __future__ import annotations

from typing import Any

from potok.settings import Settings
from potok.sinks.spark_access import JdbcAddress, JdbcConnection
from potok.spark.dataframes import session_of


class DriverSpark:
    """Starts the session when a sink first asks for it."""

    def session(self) -> Any:
        # The context runs already; settings matter only for one that starts.
        return session_of(Settings())

    def connect_jdbc(self, address: JdbcAddress) -> JdbcConnection:
        from potok.spark.jdbc import SparkJdbcConnection

        return SparkJdbcConnection(self.session(), address)
