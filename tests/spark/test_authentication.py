"""Driver and executors know each other by a secret that nobody else can read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from potok.settings import Settings
from potok.spark.session import spark_conf
from potok.spark.start.authentication import VARIABLE, NoSparkSecret, as_submitted, authentication

if TYPE_CHECKING:
    from pyspark import SparkContext


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,4]", "yarn", "k8s://https://host"])
def test_spark_makes_the_secret_where_it_can(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "of-another-cluster")
    assert authentication(master, {}) == {"spark.authenticate": "true"}


def test_a_cluster_in_this_process_gets_another_secret_each_time() -> None:
    made = [authentication("local-cluster[2,1,1024]", {})["spark.authenticate.secret"] for _ in range(2)]
    assert made[0] != made[1]
    assert all(re.fullmatch("[0-9a-f]{64}", secret) for secret in made)


def test_a_spark_cluster_needs_a_configured_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(NoSparkSecret, match="spark://host:7077") as caught:
        spark_conf(Settings(master="spark://host:7077"))
    assert VARIABLE in caught.value.hint
    monkeypatch.setenv(VARIABLE, "kept-in-a-vault")
    assert spark_conf(Settings(master="spark://host:7077"))["spark.authenticate.secret"] == "kept-in-a-vault"


def test_who_says_no_is_believed() -> None:
    conf = spark_conf(Settings(master="spark://host:7077", spark={"spark.authenticate": "false"}))
    assert conf["spark.authenticate"] == "false"
    assert "spark.authenticate.secret" not in conf


@pytest.mark.parametrize(
    ("master", "reported", "expected"),
    [
        ("spark://host:7077", {}, {"spark.authenticate": "false"}),
        ("spark://host:7077", {"spark.authenticate": "true"}, {"spark.authenticate": "true"}),
        ("local[2]", {}, {}),
    ],
)
def test_options_of_spark_submit_are_kept(master: str, reported: dict[str, str], expected: dict[str, str]) -> None:
    assert as_submitted(master, reported) == expected  # type: ignore[arg-type]


def test_the_running_session_authenticates(spark: SparkContext) -> None:
    assert spark.getConf().get("spark.authenticate") == "true"
    jvm = spark._jvm
    assert jvm is not None
    command = str(jvm.java.lang.ProcessHandle.current().info().commandLine().orElse(""))
    assert "spark.authenticate.secret" not in command
