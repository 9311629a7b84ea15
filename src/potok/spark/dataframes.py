"""The Spark session of a program that uses DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from potok.settings import Settings
from potok.spark.session import spark_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_of(settings: Settings) -> SparkSession:
    """Return the session of this process, which starts with its first DataFrame."""
    from pyspark.sql import SparkSession

    spark_context(settings)
    return SparkSession.builder.getOrCreate()
