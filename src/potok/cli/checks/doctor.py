"""`potok doctor`: check that this machine can run Potok, and how to fix what is missing."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from potok.cli.checks.finding import Finding
from potok.cli.checks.server_checks import check_own_clock, check_permissions, check_servers
from potok.cli.missing_package import HINT
from potok.cli.options import Broker, Json, command_app, settings_of
from potok.cli.output import console, print_json, show_bytes
from potok.errors import PotokError, writable
from potok.extras import has_extra
from potok.machine import usable_path
from potok.settings import Settings
from potok.version import __version__

app = command_app()

NEWEST_JAVA = 25
MODULES = ("potok.statements.session", "potok.sinks.http.client", "potok.cli.prompt.input.keyboard")
OF_EXTRAS = {
    "server": "potok.server.server",
    "kafka": "potok.log.kafka.kafka_broker",
    "redis": "potok.backends.redis_connection",
    "postgres": "potok.backends.postgres.connections",
    "cassandra": "potok.backends.cassandra.connection",
    "object-store": "potok.backends.objects.bucket",
    "avro": "potok.records.formats.avro_format",
    "protobuf": "potok.records.formats.protobuf_format",
    "webhooks": "potok.sources.webhooks.receive",
}
GIGABYTE = 1 << 30
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@app.command()
def doctor(
    context: typer.Context,
    deep: Annotated[bool, typer.Option("--deep", help="Start Spark and run a small job on it.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read the whole data directory and report damage.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Check that this machine can run Potok, and show how to fix what is missing.

    Exits with 1 if a check fails; warnings do not count.
    """
    settings = settings_of(context, broker)
    failed = False
    for finding in examine(settings, deep=deep, verify=verify):
        failed |= finding.status == "fail"
        if as_json:
            print_json(asdict(finding))
        else:
            _show(finding)
    if failed:
        raise typer.Exit(1)


def examine(settings: Settings, *, deep: bool = False, verify: bool = False) -> Iterator[Finding]:
    """Yield each finding as soon as it is known."""
    yield check_python()
    yield check_java()
    yield check_potok()
    yield check_extras()
    for package in ("pyspark", "pyarrow", "lmdb"):
        yield check_package(package, load=package != "pyspark")
    yield check_memory(settings.driver_memory, physical_memory())
    directory: Path | None = None
    try:
        directory = data_directory(settings.broker)
    except PotokError as error:
        yield Finding("data", "fail", error.message, error.hint)
    if directory is not None:
        yield from check_directory(directory)
        yield from check_permissions(directory)
        yield check_own_clock(directory)
    yield from check_servers(settings)
    if verify:
        yield from check_data(directory)
    if deep:
        yield check_spark(settings)


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    rendered = ".".join(map(str, version))
    if (3, 11) <= version[:2] <= (3, 13):
        return Finding("Python", "ok", f"{rendered} ({sys.executable})")
    return Finding("Python", "fail", rendered, "install Python 3.11, 3.12 or 3.13, and install Potok with it")


def check_java() -> Finding:
    from potok.java_runtime import find_java

    try:
        java = find_java()
    except PotokError as error:
        return Finding("Java", "fail", error.message, error.hint)
    detail = f"{java.version} from {java.source} ({java.executable})"
    if java.major > NEWEST_JAVA:
        hint = f"Spark is tested up to Java {NEWEST_JAVA}; if it fails, run with JAVA_HOME set to an older one"
        return Finding("Java", "warn", detail, hint)
    return Finding("Java", "ok", detail)


def check_potok(modules: Sequence[str] = MODULES) -> Finding:
    """Import the modules that together need all dependencies: after an update of the source, one may be missing."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            return Finding("Potok", "fail", f"cannot be loaded: {error}", HINT)
    return Finding("Potok", "ok", __version__)


def check_extras() -> Finding:
    """Import what the installed extras need, and name those that are not installed."""
    installed = [extra for extra in OF_EXTRAS if has_extra(extra)]
    loaded = check_potok([OF_EXTRAS[extra] for extra in installed])
    if loaded.status == "fail":
        return replace(loaded, what="extras")
    missing = [extra for extra in OF_EXTRAS if extra not in installed]
    detail = ", ".join(installed) or "none"
    return Finding("extras", "ok", detail + (f"; not installed: {', '.join(missing)}" if missing else ""))


def check_package(name: str, *, load: bool) -> Finding:
    """Check an installed package. `load` imports it, which proves that its native code runs on this machine."""
    try:
        version = importlib.metadata.version(name)
        if load:
            importlib.import_module(name)
    except ImportError as error:
        hint = f"pip install --force-reinstall {name}"
        return Finding(name, "fail", f"cannot be loaded: {error}", hint)
    return Finding(name, "ok", version)


def check_memory(driver_memory: str, total: int) -> Finding:
    """Leave memory for the JVM itself and one Python worker per core, in addition to the heap of the driver."""
    heap = _heap_bytes(driver_memory)
    detail = f"{show_bytes(total)}, of which Spark's driver may take {driver_memory}"
    if total < heap + GIGABYTE // 2:
        hint = "reduce the driver's memory: export POTOK_DRIVER_MEMORY=512m"
        return Finding("memory", "fail" if total < heap else "warn", detail, hint)
    return Finding("memory", "ok", detail)


def check_directory(directory: Path) -> Iterator[Finding]:
    standing = next(path for path in (directory, *directory.parents) if path.exists())
    if standing.is_dir() and os.access(standing, os.W_OK | os.X_OK):
        yield Finding("data", "ok", f"{directory} can be written")
    else:
        hint = "choose another directory with --broker file:DIRECTORY or POTOK_BROKER"
        yield Finding("data", "fail", f"{directory} cannot be written", hint)
    free = shutil.disk_usage(standing).free
    hint = "" if free >= GIGABYTE else "free some space, or choose another directory with POTOK_BROKER=file:DIRECTORY"
    status = "ok" if free >= GIGABYTE else "warn" if free >= GIGABYTE // 10 else "fail"
    yield Finding("disk", status, f"{show_bytes(free)} free", hint)


def check_data(directory: Path | None) -> Iterator[Finding]:
    """Read the log, the ledgers and the state; queries may run at the same time."""
    if directory is None:
        yield Finding(
            "verify", "warn", "the broker is not a directory", "run potok state verify QUERY to read the state"
        )
        return
    if not (directory / "log").exists():
        yield Finding("verify", "ok", f"{directory} has no data yet")
        return
    from potok.snapshots.verify_data import verify_data

    for part in verify_data(directory):
        if part.damage:
            yield Finding(part.what, "fail", f"{part.damage} ({part.detail})", part.hint)
        else:
            yield Finding(part.what, "ok", part.detail)


def check_spark(settings: Settings, start: Callable[[Settings], int] | None = None) -> Finding:
    """Run a job in a Python worker, which exercises the JVM, the sockets and the interpreter."""
    try:
        took_ms = (start or _run_spark)(settings)
    except PotokError as error:
        return Finding("Spark", "fail", error.message, error.hint)
    except Exception as error:  # noqa: BLE001 - whatever Spark raises is the finding
        return Finding("Spark", "fail", f"does not start: {error}", "run again with POTOK_LOG_LEVEL=INFO to see why")
    return Finding("Spark", "ok", f"started in {took_ms / 1000:.1f} s and ran a job")


def physical_memory() -> int:
    """Return the memory that this process may use: a container may have less than the machine."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (text := limit.read_text().strip()).isdigit():
        total = min(total, int(text))
    return total


def data_directory(broker: str) -> Path | None:
    """Return the directory of a broker URL; None if the broker is not a directory."""
    if re.match(r"(?!file:)[a-z]+:", broker):
        return None
    return usable_path(broker.removeprefix("file:"), "the log")


def _run_spark(settings: Settings) -> int:
    from potok.spark.session import spark_context, startup_ms

    context = spark_context(settings)
    context.parallelize([1], 1).map(lambda number: number + 1).collect()
    context.stop()
    return startup_ms()


def _heap_bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    if found is None:
        return 0
    return int(found.group(1)) << {"": 20, "k": 10, "m": 20, "g": 30, "t": 40}[found.group(2)]


def _show(finding: Finding) -> None:
    from rich.markup import escape

    colour = _COLOURS[finding.status]
    line = f"[{colour}]{finding.status:<4}[/]  {finding.what:<8} {escape(writable(finding.detail))}"
    console().print(line + (f"\n      [cyan]hint:[/] {escape(finding.hint)}" if finding.hint else ""))
