from __future__ import annotations

import os
import subprocess
import sys

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from potok.redact import remember
from potok.settings import Settings
from potok.spark.start.start_errors import SparkNotStarted, start_errors

JAVA = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: {}
\tat org.apache.spark.SparkContext.<init>(SparkContext.scala:603)
\tat py4j.Gateway.invoke(Gateway.java:238)
"""


def failing(error: Exception, settings: Settings) -> SparkNotStarted:
    with pytest.raises(SparkNotStarted) as raised, start_errors(settings):
        raise error
    return raised.value


@pytest.mark.parametrize(
    ("java", "cause", "hint"),
    [
        (
            "org.apache.spark.SparkException: Asked to run locally with 0 threads",
            "Asked to run locally with 0 threads",
            'master = "local[0]"',
        ),
        (
            'java.lang.IllegalArgumentException: Illegal value for config key spark.memory.fraction: "abc"',
            'Illegal value for config key spark.memory.fraction: "abc"',
            "set memory.fraction in [spark] of potok.toml",
        ),
        ("java.lang.ClassNotFoundException: no.Such", "java.lang.ClassNotFoundException: no.Such", "[spark]"),
    ],
)
def test_what_the_jvm_refuses_is_one_line_that_names_the_setting(java: str, cause: str, hint: str) -> None:
    error = failing(Py4JError(JAVA.format(java)), Settings(master="local[0]"))
    assert str(error.args[0]) == f"Spark did not start: {cause}"
    assert hint in error.hint


def test_a_jvm_that_ends_at_once_names_its_memory_its_options_and_its_master() -> None:
    gone = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    options = {"spark.driver.extraJavaOptions": "-XX:Bogus"}
    here = failing(gone, Settings(driver_memory="900g", spark=options))
    assert 'driver_memory = "900g"' in here.hint
    assert "-XX:Bogus" in here.hint
    assert 'master = "yarn"' in failing(gone, Settings(master="yarn")).hint


def test_a_secret_in_the_message_of_the_jvm_is_not_shown() -> None:
    remember("hunter22-secret")
    error = failing(Py4JError(JAVA.format("org.apache.spark.SparkException: hunter22-secret is short")), Settings())
    assert "hunter22-secret" not in str(error)
    assert error.__cause__ is None


def test_memory_that_java_does_not_understand_is_reported_without_a_traceback() -> None:
    program = (
        "from potok.errors import SetupError\n"
        "from potok.settings import Settings\n"
        "from potok.spark.session import spark_context\n"
        "try:\n    spark_context(Settings(driver_memory='4x'))\n"
        "except SetupError as error:\n    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Spark did not start: its JVM ended immediately" in ran.stdout
    assert "Traceback" not in ran.stderr
