"""The options of a Cassandra URL: `cassandra://user@host1,host2:9042/keyspace?local_dc=dc1`."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from urllib.parse import unquote

from potok.backends.state_url import Where
from potok.errors import StateError
from potok.redact import split_url

PORT = 9042

CONSISTENCIES = ("quorum", "local_quorum", "all")
"""Levels at which a read sees every earlier write. A lower one would lose committed cells."""

_KEYSPACE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_OPTIONS = ("consistency", "local_dc", "tls", "tls_ca", "tls_cert", "tls_key")
_EXAMPLE = "cassandra://user@host1,host2:9042/keyspace?local_dc=dc1"


class WrongCassandraUrl(StateError):
    """A Cassandra URL that is incomplete, or has an unknown option."""

    def __init__(self, location: str, problem: str, hint: str = f"write {_EXAMPLE}") -> None:
        super().__init__(f'the state cannot be stored at "{location}": {problem}', hint=hint)


@dataclass(frozen=True, slots=True)
class CassandraOptions:
    """Where a cluster is, and how to talk to it."""

    hosts: tuple[tuple[str, int], ...]
    keyspace: str
    user: str | None
    password: str | None
    local_dc: str | None
    consistency: str
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, where: Where) -> CassandraOptions:
        """Read the options of a URL that has its password."""
        parts = split_url(where.url)
        assert parts is not None
        given = {name: unquote(value) for name, value in parts.options}
        unknown = [name for name in given if name not in _OPTIONS]
        if unknown:
            known = ", ".join(_OPTIONS)
            raise WrongCassandraUrl(str(where), f'unknown option "{unknown[0]}"', f"the options are {known}")
        keyspace = unquote(parts.path.lstrip("/"))
        if not _KEYSPACE.fullmatch(keyspace):
            problem = f'"{keyspace}" is not the name of a keyspace' if keyspace else "it names no keyspace"
            raise WrongCassandraUrl(str(where), problem)
        consistency = given.get("consistency", CONSISTENCIES[0]).lower()
        if consistency not in CONSISTENCIES:
            hint = f"use {', '.join(CONSISTENCIES)}: with fewer replicas a read may miss what was committed"
            raise WrongCassandraUrl(str(where), f"consistency {consistency} is not supported", hint)
        hosts = tuple(_address(host, where) for host in parts.hosts.split(","))
        tls = _tls(given, where)
        return cls(hosts, keyspace, parts.user, parts.password, given.get("local_dc"), consistency, tls)


def _address(text: str, where: Where) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(PORT)
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise WrongCassandraUrl(str(where), f'"{text}" is not a host and a port')
    return host.strip("[]"), int(port)


def _tls(given: dict[str, str], where: Where) -> ssl.SSLContext | None:
    files = {name: given[name] for name in ("tls_ca", "tls_cert", "tls_key") if name in given}
    wanted = _BOOLEANS.get(given.get("tls", "true" if files else "false").lower())
    if wanted is None:
        raise WrongCassandraUrl(str(where), "tls is neither true nor false", "write tls=true")
    if not wanted:
        return None
    try:
        context = ssl.create_default_context(cafile=files.get("tls_ca"))
        if "tls_cert" in files:
            context.load_cert_chain(files["tls_cert"], files.get("tls_key"))
    except (OSError, ssl.SSLError) as error:
        hint = "tls_ca, tls_cert and tls_key are paths of PEM files that this process can read"
        raise WrongCassandraUrl(str(where), f"its certificates cannot be loaded: {error}", hint) from error
    return context
