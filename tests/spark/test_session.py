from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from potok.errors import SetupError
from potok.settings import Settings
from potok.spark import session
from potok.spark.session import spark_conf, spark_context

if TYPE_CHECKING:
    from pyspark import SparkContext


def test_a_failed_task_is_retried_and_never_run_twice_at_once() -> None:
    conf = spark_conf(Settings())
    assert conf["spark.master"] == "local[*,4]"
    assert conf["spark.speculation"] == "false"


def test_spark_settings_have_the_highest_priority() -> None:
    conf = spark_conf(Settings.load(environ={}, driver_memory="3g", spark={"sql": {"shuffle.partitions": 7}}))
    assert conf["spark.driver.memory"] == "3g"
    assert conf["spark.sql.shuffle.partitions"] == "7"


def test_options_for_the_jvm_are_added_to_those_for_its_log() -> None:
    conf = spark_conf(Settings(spark={"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}))
    options = conf["spark.driver.extraJavaOptions"].split()
    assert options[-1] == "-XX:+UseSerialGC"
    assert options[0].startswith("-Dlog4j2.configurationFile=file:/")


@pytest.mark.parametrize(("level", "rendered"), [("ERROR", False), ("WARN", True), ("info", True)])
def test_failed_tasks_are_logged_only_to_who_asks_for_more_than_errors(level: str, rendered: bool) -> None:
    options = spark_conf(Settings(log_level=level))["spark.driver.extraJavaOptions"]
    assert ("-Dpotok.failure.level" in options) == rendered


def test_only_a_local_driver_is_bound_to_this_machine() -> None:
    assert "spark.driver.host" in spark_conf(Settings())
    elsewhere = Settings(master="spark://cluster:7077", spark={"spark.authenticate.secret": "s3cr3t"})
    assert "spark.driver.host" not in spark_conf(elsewhere)


def test_the_context_is_started_once(spark: SparkContext) -> None:
    assert spark_context(Settings(driver_memory="5g")) is spark


def test_a_key_pressed_on_the_terminal_does_not_reach_spark(spark: SparkContext) -> None:
    workers = spark.parallelize([0], 1).map(lambda _: os.getsid(0)).collect()
    assert workers != [os.getsid(0)]


def test_a_context_that_is_there_already_is_used(spark: SparkContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_own", None)
    assert spark_context(Settings()) is spark


def test_a_context_with_speculative_tasks_is_refused(spark: SparkContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_own", None)
    speculative = spark.getConf().set("spark.speculation", "true")
    monkeypatch.setattr(spark, "getConf", lambda: speculative)
    with pytest.raises(SetupError, match="speculative"):
        spark_context(Settings())


def test_the_jvm_is_lean_unless_configured_or_on_a_cluster() -> None:
    def options(settings: Settings) -> str:
        return spark_conf(settings)["spark.driver.extraJavaOptions"]

    assert "TieredStopAtLevel=1" in options(Settings())
    assert "Tiered" not in options(Settings(spark={"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}))
    assert "Tiered" not in options(Settings(master="yarn"))
