from __future__ import annotations

from pyspark import SparkContext

from potok.spark.activity import spark_activity


def test_the_executors_of_a_running_spark_are_listed(spark: SparkContext) -> None:
    found = spark_activity()
    assert found is not None and found["application"] == spark.applicationId
    (driver,) = found["executors"]
    assert driver["address"].rpartition(":")[2].isdigit()
    assert driver["running"] == 0 and 0 <= driver["used_bytes"] < driver["memory_bytes"]
