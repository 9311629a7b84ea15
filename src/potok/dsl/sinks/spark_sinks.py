"""Write streams and tables through Spark: with a function of DataFrames, or with a JDBC driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from potok.dsl.graph_builder import calling_location
from potok.dsl.sinks.delivering import RowDelivering, given_up
from potok.duration import Duration
from potok.errors import TopologyError
from potok.expressions.function import Function, WrongArity
from potok.sinks.dataframe import BatchFormat, DataFrameTarget
from potok.sinks.guarantee import Guarantee, GuaranteeName
from potok.sinks.jdbc.jdbc import JdbcTarget
from potok.sinks.typed_rows import Mode, RowShape


class SparkSinks(RowDelivering):
    """The methods that write through Spark, in the driver process."""

    def to_dataframe(
        self,
        write: Callable[..., Any],
        *,
        format: BatchFormat = "spark",
        with_key: bool = False,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Call a function with the rows of each batch, as a DataFrame: for any writer that Spark has.

        >>> orders.to_dataframe(lambda df, batch: df.write.mode("overwrite").parquet(f"lake/orders/batch={batch}"))

        Args:
            write: Called in the driver with the DataFrame, and with the number of the batch if it takes two arguments.
                It may return `{row: reason}`: these records become dead letters. If it raises, the query stops, and the
                next start repeats the batch.
            format: `spark`, or `arrow` for a `pyarrow.Table`, which needs no Spark session.
            with_key: The columns are key, timestamp and value instead of the fields of the value; required for null
                values.
            guarantee: `exactly_once` needs the number of the batch: after a crash a batch is repeated with the same
                number, and the function must replace what it did for that number.
            name: Names the step.
        """
        at = calling_location()
        try:
            chosen = Function.of(write, (1, 2))
        except WrongArity as error:
            hint = "write lambda df: ... or lambda df, batch: ..."
            raise TopologyError(error.message, hint=hint, at=error.at or at) from error
        target = DataFrameTarget(chosen, format, RowShape("append", with_key=with_key))
        self._deliver(target, chosen.name.split(".")[-1].strip("<>"), guarantee, name)

    def to_jdbc(
        self,
        url: str,
        table: str,
        *,
        mode: Mode | None = None,
        key: str | Sequence[str] = (),
        columns: Mapping[str, str] | None = None,
        with_key: bool = False,
        driver: str = "",
        jar: str | Path = "",
        properties: Mapping[str, str] | None = None,
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        name: str | None = None,
    ) -> None:
        """Write to a table of a database with a JDBC driver, one transaction for each batch.

        >>> orders.to_jdbc("jdbc:postgresql://localhost/shop?user=app", "orders")
        >>> totals.to_jdbc("jdbc:mariadb://localhost/shop", "totals", properties={"user": "app", "password": password})

        Args:
            url: The JDBC URL of the database.
            table: Created if it does not exist; `"shop.orders"` includes a schema.
            mode: `append` adds a row for each record, the default for streams. `upsert` replaces the row of the same
                key, and deletes it for a null value: the default for tables.
            key: The fields of the value that identify a row; by default the key of the record.
            columns: Column names by field, where they differ.
            with_key: Append key, timestamp and value instead of the value alone; required for null values.
            driver: The class of the driver; by default that of the database in the URL.
            jar: The file of the driver, or its coordinates, `group:name:version`; by default it is fetched from Maven
                Central.
            properties: Passed to the driver, for example `user` and `password`.
            give_up_after: How long to retry while the server does not answer before the query stops; by default the
                setting `retry_for`.
            guarantee: With `exactly_once`, the table `potok_jdbc_fences` in the same database holds the last batch.
            name: Names the step and its fence.
        """
        shape = self._shape(mode, key, columns, with_key)
        given = tuple((properties or {}).items())
        target = JdbcTarget(url, table, shape, driver, str(jar), given, given_up(give_up_after))
        self._deliver(target, table, guarantee, name)
