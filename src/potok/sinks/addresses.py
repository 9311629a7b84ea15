"""URLs of sinks: what is shown of them, and the secrets that they bring."""

from __future__ import annotations

import re
from collections.abc import Iterable

from potok.errors import TopologyError
from potok.redact import Url, is_secret, redact_url, remember, split_url

_LONG = 8
"""An option of so many characters may be a token, whatever it is called."""


def address_of(url: str) -> str:
    """The server and the path: neither a login nor options, in which a token may stand."""
    parts = split_url(url)
    return redact_url(url) if parts is None else parts.address


def host_of(url: str) -> str:
    """The name of the server alone."""
    parts = split_url(url)
    return "" if parts is None else re.sub(r":\d*$", "", parts.hosts).strip("[]").lower()


def clear_url(url: str) -> Url:
    """The parts of a URL; raises for one of which nobody can say where its password ends."""
    parts = split_url(url)
    if parts is None:
        raise TopologyError(
            f'"{redact_url(url)}" cannot be taken apart',
            hint="in a URL, write / ? # @ & and % of user, password and options as %2F %3F %23 %40 %26 %25",
        )
    return parts


def remember_url(url: str, headers: Iterable[tuple[str, str]] = ()) -> None:
    """Keep what a server is told to let us in out of all texts: it may repeat it when it refuses."""
    parts = split_url(url)
    if parts is not None:
        remember(*parts.secrets, *(value for _, value in parts.options if len(value) >= _LONG))
    for name, value in headers:
        if is_secret(name):
            remember(value, *value.split()[1:])
