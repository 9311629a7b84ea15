"""Report why Spark did not start: an error of its JVM becomes a message that names the setting to change."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from potok.errors import SetupError
from potok.redact import redact, safe_cause
from potok.runtime.batches.failure_cause import cause_of
from potok.settings import Settings

_CLASS = re.compile(r"(Caused by: )?((org\.apache\.spark\.[\w.]+|java\.lang\.IllegalArgumentException): )?")
_NAMED = re.compile(r"spark\.[a-zA-Z0-9.]+[a-zA-Z0-9]")


class SparkNotStarted(SetupError):
    """Spark's JVM ended while it started, or refused its settings."""

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"Spark did not start: {cause}", hint=hint)


@contextlib.contextmanager
def start_errors(settings: Settings) -> Iterator[None]:
    """Convert errors of PySpark and of the JVM while Spark starts."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        memory, options = settings.driver_memory, settings.spark.get("spark.driver.extraJavaOptions", "")
        hint = f'check driver_memory = "{memory}" in potok.toml: write "2g" or "512m", less than this machine has'
        if options:
            hint += f"; and driver.extraJavaOptions in [spark], {redact(options)}"
        if not settings.master.startswith("local"):
            hint = f'check master = "{redact(settings.master)}" and [spark] in potok.toml'
        raise SparkNotStarted("its JVM ended immediately, with the message above", hint) from safe_cause(error)
    except Py4JError as error:
        cause = redact(_CLASS.sub("", cause_of(error), count=1))
        raise SparkNotStarted(cause, _hint(cause, settings)) from safe_cause(error)


def _hint(cause: str, settings: Settings) -> str:
    named = _NAMED.search(cause)
    if named and not named[0].startswith("spark.apache.org"):
        return f"set {named[0].removeprefix('spark.')} in [spark] of potok.toml"
    return f'check master = "{redact(settings.master)}" and [spark] in potok.toml; master = "local[*]" needs no cluster'
