"""The Spark context: started here with the settings that Potok needs, or taken from the surrounding program."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from potok.errors import SetupError
from potok.java_runtime import Java, find_java, java_home_for_spark
from potok.redact import is_secret
from potok.settings import Settings
from potok.spark.shutdown import hush_driver
from potok.spark.signals import deferred_signals
from potok.spark.start.authentication import as_submitted, authentication
from potok.spark.start.class_archive import ClassArchive
from potok.spark.start.start_errors import start_errors
from potok.spark.worker_logs import task_log_options

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

log = logging.getLogger(__name__)

_PROCESS_CONF = {
    "spark.app.name": "potok",
    # Two concurrent attempts of one task would be two writers of one shard.
    "spark.speculation": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "potok.spark.worker_daemon",
    # With TCP every Python stage waits about 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    # Shuffle blocks are columns, written to this machine's memory and read at once: compressing them takes longer.
    "spark.shuffle.compress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # Spark's own pattern does not match the login of Kafka's Java client.
    "spark.redaction.regex": "(?i)secret|passw|passphrase|token|credential|jaas|access[.]?key|ssl[.].*key",
}
"""Fixed when the JVM starts."""

_LOCAL_CONF = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

_QUIET_LEVELS = ("ERROR", "FATAL", "OFF")

_own: SparkContext | None = None
_startup_ms = 0


def spark_context(settings: Settings | None = None) -> SparkContext:
    """Return the context of this process. An active context is used as it is, if it is usable."""
    global _own, _startup_ms
    from pyspark import SparkContext

    active = SparkContext._active_spark_context
    if active is None:
        began = time.perf_counter()
        active = _own = _start(settings or Settings.load())
        atexit.register(_stop_at_exit)
        _startup_ms = round((time.perf_counter() - began) * 1000)
        log.info("Spark started in %d ms", _startup_ms)
    elif active is not _own:
        _check_usable(active)
    return active


def _stop_at_exit() -> None:
    """Stop Spark at exit: idle workers would otherwise print errors about the missing JVM."""
    from pyspark import SparkContext

    if _own is not None and _own is SparkContext._active_spark_context:
        # This process is ending: another Ctrl-C would only print a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from py4j.protocol import Py4JError

        # The JVM may be gone: then there is nothing to stop, and the error has already been reported.
        with contextlib.suppress(OSError, Py4JError):
            _own.stop()


def startup_ms() -> int:
    """Return how long the context took to start; 0 if this process did not start it."""
    return _startup_ms


def spark_conf(settings: Settings) -> dict[str, str]:
    """Return all options of Spark at its start; `settings.spark` takes precedence."""
    warehouse = settings.cache_path / "warehouse"
    conf = {
        **_PROCESS_CONF,
        **task_log_options(settings.log_level),
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.ui.enabled": str(settings.spark_ui).lower(),
        "spark.sql.warehouse.dir": warehouse.as_uri(),
    }
    if settings.master.startswith("local"):
        conf |= _LOCAL_CONF
    if settings.broker.startswith("kafka:") and settings.reader == "connector":
        conf |= _connector_conf(settings)
    conf |= authentication(settings.master, settings.spark)
    conf |= settings.spark
    given = settings.spark.get("spark.driver.extraJavaOptions", "")
    options = [
        *_logging_options(settings.log_level or "ERROR", settings.log_format),
        *_lean_options(settings.master, given),
        given,
    ]
    conf["spark.driver.extraJavaOptions"] = " ".join(options).strip()
    return conf


def _connector_conf(settings: Settings) -> dict[str, str]:
    """Return the options of Spark's Kafka connector, which is downloaded on first use."""
    from potok.log.kafka.development.jars import connector_jars
    from potok.spark.connector import CHOICE

    jars = ",".join(map(str, connector_jars(settings.cache_path)))
    return {"spark.jars": jars, CHOICE: "connector", "spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}


def _lean_options(master: str, given: str) -> list[str]:
    """Return options for the JVM on one machine, which moves shuffle blocks between Python processes and does little
    else.

    With only the first-tier compiler the start takes half the processor time (4.7 s against 9.6 s), and on 2 cores
    the first minute is 12 % faster: the second compiler takes a core from the workers. One collector thread and a
    small initial heap use 100 MB less. A collector or compiler chosen by the user takes precedence.
    """
    if not master.startswith("local") or "GC" in given or "Tiered" in given:
        return []
    return ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms64m"]


def _logging_options(level: str, log_format: str) -> list[str]:
    """Configure what Spark prints by files next to this one; at a lower level, failed tasks are logged too."""
    names = ["log4j2.properties", *(["log4j2-json.properties"] if log_format == "json" else [])]
    files = ",".join(Path(__file__).with_name(name).as_uri() for name in names)
    options = [f"-Dlog4j2.configurationFile={files}", f"-Dpotok.log.level={level}"]
    return options if level.upper() in _QUIET_LEVELS else [*options, f"-Dpotok.failure.level={level}"]


def _start(settings: Settings) -> SparkContext:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = _submitted_conf()
    if conf is None:
        conf = _conf_of(spark_conf(settings))
        launched_with = _conf_of({name: value for name, value in conf.getAll() if not is_secret(name)})
    else:
        # `spark-submit` has started the JVM, and its options apply.
        launched_with = conf
        master = conf.get("spark.master", settings.master)
        settings = replace(settings, master=master, spark={**as_submitted(master, conf), **settings.spark})
        for name, value in spark_conf(settings).items():
            conf.setIfMissing(name, value)
        _refuse_speculation(conf)
    _choose_python(settings.master)
    hush_driver()
    java = find_java()
    archive = None if SparkContext._gateway else _with_archive(java, settings.cache_path, [conf, launched_with])
    home = str(java_home_for_spark(java, settings.cache_path))
    with start_errors(settings), _environment("JAVA_HOME", home):
        # In its own session: otherwise Ctrl-C would interrupt the Python workers in the middle of a batch.
        options = {"start_new_session": True}
        with deferred_signals():
            # Command lines are visible to all users of the machine; secrets reach the JVM with the context.
            gateway = SparkContext._gateway or launch_gateway(launched_with, options)  # type: ignore[no-untyped-call]
        with deferred_signals():
            if archive is not None and archive.is_recording:
                archive.started(gateway.jvm, gateway.proc.pid)
            return SparkContext(conf=conf, gateway=gateway)


def _with_archive(java: Java, cache: Path, confs: list[SparkConf]) -> ClassArchive:
    """Let the JVM use the archive of Spark's classes, or list them for the next start."""
    options = str(confs[0].get("spark.driver.extraJavaOptions", ""))
    archive = ClassArchive.of(java, cache, options)
    for conf in confs:
        conf.set("spark.driver.extraJavaOptions", " ".join([options, *archive.options]))
    if archive.is_recording:
        atexit.register(archive.dump)
    return archive


def _conf_of(values: Mapping[str, str]) -> SparkConf:
    from pyspark import SparkConf

    conf = SparkConf(loadDefaults=False)
    for name, value in values.items():
        conf.set(name, value)
    return conf


def _submitted_conf() -> SparkConf | None:
    from pyspark import SparkConf, SparkContext

    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    SparkContext._ensure_initialized()
    return SparkConf()


def _check_usable(context: SparkContext) -> None:
    """Raise if a context was started with options that are unsafe for a query."""
    running = context.getConf()
    _refuse_speculation(running)
    if running.get("spark.python.unix.domain.socket.enabled", "false") != "true":
        log.warning("the active Spark session has no spark.python.unix.domain.socket.enabled=true: batches take longer")


def _refuse_speculation(conf: SparkConf) -> None:
    if conf.get("spark.speculation", "false") == "true":
        raise SetupError(
            "Spark was started with speculative tasks, so two tasks could write to one shard at the same time",
            hint="start it with spark.speculation=false, or let Potok start it",
        )


def _choose_python(master: str) -> None:
    """Run workers with the interpreter of this process; on a cluster its path may not exist, so a given one is kept."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if master.startswith("local") or name not in os.environ:
            os.environ[name] = sys.executable


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
