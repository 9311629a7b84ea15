"""The data source `potok`, in a module that PySpark finds by its name, so that it needs no registration."""

from potok.spark.data_source.source import PotokDataSource as DefaultSource

__all__ = ["DefaultSource"]
