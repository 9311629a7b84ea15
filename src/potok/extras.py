"""The optional parts of the package: what each extra installs, and the error where one is missing."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec

from potok.errors import SetupError

EXTRAS = {
    "server": ("fastapi", "starlette", "uvicorn", "httptools", "websockets", "h2"),
    "kafka": ("confluent_kafka",),
    "redis": ("redis",),
    "postgres": ("psycopg",),
    "cassandra": ("cassandra",),
    "object-store": ("obstore",),
    "avro": ("fastavro",),
    "protobuf": ("google.protobuf",),
    "webhooks": ("uvicorn", "starlette", "httptools", "h2", "cryptography"),
    "cdc": ("psycopg2", "pymysqlreplication"),
    "personal": ("cryptography",),
    "rabbitmq": ("aio_pika", "pamqp"),
    "mqtt": ("paho.mqtt",),
    "zeromq": ("zmq",),
    "nng": ("pynng",),
    "dataframes": ("pandas", "polars"),
    "delta": ("deltalake",),
    "tracing": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "iceberg": ("pyiceberg", "sqlalchemy"),
}
"""The modules by which each extra is known; pyproject.toml lists the packages."""


class ExtraMissing(SetupError):
    """A feature whose packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra {extra}, which is not installed", hint=f'pip install "potok[{extra}]"'
        )


@cache
def need_extra(feature: str, extra: str) -> None:
    """Raise `ExtraMissing` unless the packages of the extra are installed."""
    if not has_extra(extra):
        raise ExtraMissing(feature, extra)


def has_extra(extra: str) -> bool:
    """Return whether the packages of an extra are installed, without importing them."""
    return all(_is_installed(module) for module in EXTRAS[extra])


def extra_of(module: str) -> str | None:
    """Return the extra that installs a module."""
    for extra, modules in EXTRAS.items():
        if any(f"{module}.".startswith(f"{known}.") or f"{known}.".startswith(f"{module}.") for known in modules):
            return extra
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        # The package around it is missing; or the module is loaded and has no specification.
        return sys.modules.get(module) is not None
