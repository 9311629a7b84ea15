"""Where the schema registry is, and how to log in: the setting `schema_registry`, with the options of Confluent's
clients.

Tasks receive the connection with their plan (`using_connection`); other processes read it from the settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache

from potok.errors import SchemaError
from potok.redact import redact_url, remember, split_url
from potok.settings import SettingError, Settings

_HIGHEST_PORT = 65_535
_ENVIRONMENT = "env:"
_BOOLEANS = {"true": True, "false": False}
_SETTING = "schema_registry"

STRATEGIES = ("topic", "record", "topic_record")
_STRATEGIES = {
    "topic": "topic",
    "record": "record",
    "topic_record": "topic_record",
    "topicname": "topic",
    "topicnamestrategy": "topic",
    "recordnamestrategy": "record",
    "topicrecordnamestrategy": "topic_record",
}

OPTIONS = {
    "url": "the URL of the registry, or several separated by commas, which are tried in turn",
    "basic.auth.user.info": "user and password: `user:password`",
    "bearer.auth.token": "a token, in place of user and password",
    "ssl.ca.location": "file with the certificates of authorities to trust, in place of the system's",
    "ssl.certificate.location": "file with the certificate of this client",
    "ssl.key.location": "file with the private key of that certificate",
    "ssl.key.password": "the password of that key",
    "auto.register.schemas": "`false` writes with the latest schema of the subject and registers none",
    "subject.name.strategy": "how subjects are named: `topic` (the default), `record` or `topic_record`",
    "key.subject.name.strategy": "the same for keys",
    "value.subject.name.strategy": "the same for values",
}

_SECRETS = ("basic.auth.user.info", "bearer.auth.token", "ssl.key.password")


@dataclass(frozen=True, slots=True)
class Connection:
    """A registry, by its addresses without the login."""

    addresses: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    registers: bool = True
    key_strategy: str = "topic"
    value_strategy: str = "topic"

    @property
    def url(self) -> str:
        """Return the first address, for messages."""
        return self.addresses[0]


def connection_of(options: Mapping[str, str]) -> Connection | None:
    """Return the connection that the setting `schema_registry` describes; None if it has no URL."""
    for name in options.keys() - OPTIONS.keys():
        raise SettingError(f"there is no setting {_SETTING}.{name}", hint=f"the options are {', '.join(OPTIONS)}")
    urls = [url.strip() for url in options.get("url", "").split(",") if url.strip()]
    if not urls:
        return None
    remember(*(options[name] for name in _SECRETS if name in options))
    user, password = None, None
    if "basic.auth.user.info" in options:
        user, colon, password = options["basic.auth.user.info"].partition(":")
        if not colon:
            raise SettingError(f"{_SETTING}.basic.auth.user.info has no password", hint="write user:password")
        remember(password)
    addresses = []
    for url in urls:
        address, own_user, own_password = _parts(url, f"{_SETTING}.url")
        addresses.append(address)
        if own_user is not None and user is None:
            user, password = own_user, own_password
    registers = options.get("auto.register.schemas", "true").lower()
    if registers not in _BOOLEANS:
        raise SettingError(f"{_SETTING}.auto.register.schemas cannot be {registers}", hint="write true or false")
    strategy = options.get("subject.name.strategy", "topic")
    return Connection(
        tuple(addresses),
        user,
        password,
        options.get("bearer.auth.token"),
        options.get("ssl.ca.location"),
        options.get("ssl.certificate.location"),
        options.get("ssl.key.location"),
        options.get("ssl.key.password"),
        _BOOLEANS[registers],
        _strategy(options.get("key.subject.name.strategy", strategy)),
        _strategy(options.get("value.subject.name.strategy", strategy)),
    )


def connection_at(url: str) -> Connection:
    """Return the connection to a URL, or to the one in an environment variable: `env:NAME`."""
    found = url
    if url.startswith(_ENVIRONMENT):
        name = url.removeprefix(_ENVIRONMENT)
        if name not in os.environ:
            raise SchemaError(
                f"the environment variable {name} is not set", hint=f"export {name}=http://user:password@host:8081"
            )
        found = os.environ[name]
    try:
        address, user, password = _parts(found, "the option registry")
    except SettingError as error:
        raise SchemaError(error.message, hint=error.hint) from None
    return Connection((address,), user, password)


def _parts(url: str, where: str) -> tuple[str, str | None, str | None]:
    """Return address, user and password of a URL. Raise if it is not one, without showing it: it may contain a
    password."""
    parts = split_url(url)
    host, _, port = ("", "", "") if parts is None else re.sub(r":(\d*)$", r" \1", parts.hosts).partition(" ")
    right = parts is not None and parts.scheme.lower() in ("http", "https") and host and not parts.options
    if not right or "," in host or int(port or 0) > _HIGHEST_PORT or not re.fullmatch(r"[!-~]*", url):
        raise SettingError(f"{where} is not a URL of HTTP", hint='write "http://host:8081", with % escapes')
    assert parts is not None
    if parts.password:
        remember(parts.password)
    return parts.address.rstrip("/"), parts.user, parts.password


def _strategy(name: str) -> str:
    """Return a strategy by its name here, or by the class of Confluent's serializers."""
    found = _STRATEGIES.get(name.rpartition(".")[2].lower())
    if found is None:
        hint = f"write one of {', '.join(STRATEGIES)}"
        raise SettingError(f'there is no subject name strategy "{name}" ({_SETTING})', hint=hint)
    return found


_given: ContextVar[Connection | None] = ContextVar("schema_registry", default=None)


@contextmanager
def using_connection(connection: Connection | None) -> Iterator[None]:
    """Have formats use this registry; with None, the one of the settings."""
    before = _given.set(connection)
    try:
        yield
    finally:
        _given.reset(before)


def current_connection() -> Connection | None:
    """Return the registry that formats use which name none."""
    found = _given.get()
    if found is not None:
        return found
    try:
        directory = os.getcwd()
    except OSError:
        # It was deleted.
        directory = ""
    # The URL stands for all variables here: reading them all takes longer than a small batch.
    return _of_settings(directory, os.environ.get("POTOK_SCHEMA_REGISTRY_URL", ""))


@lru_cache(maxsize=16)
def _of_settings(_directory: str, _url: str) -> Connection | None:
    return connection_of(Settings.load().schema_registry)


def shown_url(connection: Connection) -> str:
    """Return the address for display."""
    return redact_url(connection.url)
