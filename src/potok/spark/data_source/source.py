"""The data source `potok` of PySpark: tables and topics as DataFrames, in batch and in streaming queries."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from potok.spark.data_source.options import BadOptionError, TableOptions, parse_options
from potok.spark.data_source.spark_types import spark_schema
from potok.spark.data_source.table_source import TableSource, table_reader
from potok.spark.data_source.table_stream import TableStreamReader, changes_schema
from potok.spark.data_source.topic_columns import TopicColumns
from potok.spark.data_source.topic_source import topic_reader
from potok.spark.data_source.topic_stream import TopicStreamReader


class PotokDataSource(DataSource):
    """Read tables and topics of Potok.

    >>> spark.read.format("potok").option("broker", "file:./data").option("table", "order_counts").load()
    >>> spark.readStream.format("potok").option("topic", "orders").option("value", "amount double").load()
    """

    @classmethod
    def name(cls) -> str:
        return "potok"

    def schema(self) -> StructType:
        options = parse_options(self.options)
        if not isinstance(options, TableOptions):
            return spark_schema(TopicColumns(options).schema)
        rows = TableSource(options).arrow_schema
        # Spark does not say here whether the query is a stream, so an option does.
        return spark_schema(changes_schema(rows) if options.changes else rows)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_options(self.options)
        if not isinstance(options, TableOptions):
            return topic_reader(options, schema)
        if options.changes:
            raise BadOptionError(
                "changes are read as a stream", 'use spark.readStream, or leave out the option "changes"'
            )
        return table_reader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = parse_options(self.options)
        if not isinstance(options, TableOptions):
            return TopicStreamReader(options, schema)
        if not options.changes:
            raise BadOptionError("a stream of a table is that of its changes", 'write .option("changes", True)')
        return TableStreamReader(options, schema)
