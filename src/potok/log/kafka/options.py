"""The options of Kafka's client: from the URL, the environment and `potok.toml`, in this order of precedence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import quote, unquote

from confluent_kafka import KafkaException, Producer

from potok.log.errors import BrokerNotSupported
from potok.log.kafka.errors import OptionError
from potok.machine import usable_path
from potok.redact import MASK, is_secret, redact, redact_url, remember, remember_options, split_url

SCHEME = "kafka://"
DEFAULT_PORT = 9092
HOME = "home"
"""The only URL parameter of Potok itself: the directory or server for ledgers and state."""

FIRST_TIMEOUT_S = 2.0

_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """Where the brokers are, and the options of librdkafka by their own names.

    >>> options = KafkaOptions.of_url("kafka://localhost:9092?security.protocol=SSL")
    """

    servers: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    home: str = "data"
    first_timeout_s: float = field(default=FIRST_TIMEOUT_S, compare=False)
    """How long to wait for the first response if nothing listens: the address is wrong, or no server is running."""

    @classmethod
    def of_url(cls, url: str, others: Mapping[str, str] | None = None, home: str = "") -> KafkaOptions:
        """Combine the options of a URL with `others` and `home`, which come from the settings."""
        rest = url.removeprefix(SCHEME)
        hosts, _, query = rest.partition("?")
        servers = tuple(_server(host) for host in hosts.rstrip("/").split(",") if host)
        if not url.startswith(SCHEME) or not servers or "/" in "".join(servers):
            raise BrokerNotSupported(redact_url(url), 'write kafka://HOST:PORT, for example "kafka://localhost:9092"')
        if "@" in hosts:
            hint = "pass the user as ?sasl.username=, and the password as POTOK_KAFKA_SASL_PASSWORD"
            raise BrokerNotSupported(redact_url(url), hint)
        given = _pairs(query)
        chosen = given.pop(HOME, home or "data")
        made = cls(servers, {**(others or {}), **given}, chosen)
        made.remember_secrets()
        return made

    def remember_secrets(self) -> None:
        """Redact the secrets of these options from all text of this process."""
        remember_options(self.values)
        parts = split_url(self.home)
        if parts is not None:
            remember(*parts.secrets)

    def __hash__(self) -> int:
        return hash((self.servers, tuple(sorted(self.values.items())), self.home))

    def __repr__(self) -> str:
        return f"KafkaOptions({self.url!r})"

    @property
    def bootstrap(self) -> str:
        return ",".join(self.servers)

    @property
    def home_url(self) -> str | None:
        """The server that stores ledgers and state; None for a directory."""
        return self.home if "://" in self.home and not self.home.startswith("file:") else None

    @property
    def home_path(self) -> Path:
        """The directory for ledgers and state or, if a server stores these, for temporary files."""
        return usable_path("data" if self.home_url else self.home.removeprefix("file:"), "the directory of home=")

    @property
    def url(self) -> str:
        """The URL without secrets: for display, not for opening it again."""
        options = [f"{name}={_printable(name, text)}" for name, text in self._listed()]
        return SCHEME + self.bootstrap + ("?" + "&".join(options) if options else "")

    def _listed(self) -> list[tuple[str, str]]:
        home = [] if self.home == "data" else [(HOME, self.home)]
        return home + sorted(self.values.items())

    def client(self) -> dict[str, str]:
        """Return the options by librdkafka's names."""
        self.remember_secrets()
        return {**self.values, "bootstrap.servers": self.bootstrap}

    def hide(self, text: str) -> str:
        """Redact secrets from a text."""
        self.remember_secrets()
        return redact(text)


def _printable(name: str, text: str) -> str:
    if name == HOME:
        return redact_url(text)
    return MASK if is_secret(name) or "@" in text else quote(text, safe="/:")


def _server(host: str) -> str:
    has_port = host.rpartition("]")[2].rpartition(":")[1]
    return host if has_port else f"{host}:{DEFAULT_PORT}"


def _pairs(query: str) -> dict[str, str]:
    """Parse pairs. Unlike in forms, a plus sign is a plus sign: it is frequent in passwords."""
    found = {}
    for number, pair in enumerate(filter(None, query.split("&")), 1):
        name, equals, value = pair.partition("=")
        if not equals or not _NAME.fullmatch(unquote(name)):
            # Not repeated: it may be the rest of a password.
            raise OptionError(
                f"option {number} in the URL is not of the form NAME=VALUE",
                "write & ? # % in a value as %26 %3F %23 %25",
            )
        found[unquote(name)] = unquote(value)
    return found


@cache
def has_mechanism(name: str) -> bool:
    """Return whether the client supports a SASL mechanism, which it checks at its creation. The address is invalid,
    so it never connects."""
    given = {"bootstrap.servers": "0.0.0.0:1", "log_level": "0", "sasl.username": "nobody", "sasl.password": "nothing"}
    try:
        Producer({**given, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": name})
    except KafkaException:
        return False
    return True
