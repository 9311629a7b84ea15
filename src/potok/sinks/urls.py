"""URLs of sinks: their display forms and their secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from potok.errors import TopologyError
from potok.redact import Url, is_secret, redact_url, remember, split_url

_LONG = 8
"""An option value at least this long may be a token, whatever its name."""


def address_of(url: str) -> str:
    """Return the server and the path, without login and options, which may contain a token."""
    parts = split_url(url)
    return redact_url(url) if parts is None else parts.address


def host_of(url: str) -> str:
    """Return only the name of the server."""
    parts = split_url(url)
    return "" if parts is None else re.sub(r":\d*$", "", parts.hosts).strip("[]").lower()


def clear_url(url: str) -> Url:
    """Split a URL; raise if it is ambiguous where its password ends."""
    parts = split_url(url)
    if parts is None:
        raise TopologyError(
            f'"{redact_url(url)}" is not a valid URL',
            hint="in a URL, write / ? # @ & and % of user, password and options as %2F %3F %23 %40 %26 %25",
        )
    return parts


def remember_url(url: str, headers: Iterable[tuple[str, str]] = ()) -> None:
    """Redact credentials from all text: a server may repeat them in an error."""
    parts = split_url(url)
    if parts is not None:
        remember(*parts.secrets, *(value for _, value in parts.options if len(value) >= _LONG))
    for name, value in headers:
        if is_secret(name):
            remember(value, *value.split()[1:])
