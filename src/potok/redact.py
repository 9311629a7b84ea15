"""Redact secrets from everything that is shown, logged or stored. No other module does so.

The authority of a URL ends at the first `/`, `?` or `#`. An ambiguous URL, whose password contains one of these
unescaped, is shown as its scheme alone and is refused (`split_url` returns None).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote

MASK = "***"

_SECRET_NAMES = re.compile(
    r"passw|passphrase|secret|jaas|key|token|credential|authorization|cookie|user\.info", re.IGNORECASE
)

_LEFT_OUT = re.compile(r"passw|passphrase|secret|token|credential|scram_\w+_key", re.IGNORECASE)
"""Options that are removed from a URL before it is stored for other processes; the path of a key file is kept."""

SHORTEST = 4
"""Shorter secrets are not searched for: they would match unrelated text."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?(.*)", re.DOTALL)
_HOSTS = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^\s:@\[\]]*)(:\d*)?")
_IN_TEXT = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>`]+")

_known: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether an option of this name holds a secret."""
    return _SECRET_NAMES.search(name) is not None


def remember(*secrets: str) -> None:
    """Redact these secrets from all text, in every escaped form."""
    for secret in secrets:
        plain = unquote(secret)
        for text in (secret, plain):
            escaped = quote(text, safe=""), quote(text), quote_plus(text), repr(text)[1:-1], json.dumps(text)[1:-1]
            _known.update(form for form in (text, *escaped) if len(form) >= SHORTEST)


def remember_options(options: Mapping[str, str]) -> None:
    """Redact the values of options whose name identifies them as secret."""
    remember(*(value for name, value in options.items() if is_secret(name)))


def redact(text: str) -> str:
    """Mask all known secrets, and the passwords of URLs, in a text."""
    for secret in sorted(_known, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, MASK)
    return _IN_TEXT.sub(lambda found: _redact_in_text(found[0]), text) if "://" in text else text


def safe_cause(error: BaseException) -> BaseException | None:
    """Return an error of a library for `raise ... from`, or None if its text contains a secret."""
    return error if redact(str(error)) == str(error) else None


class Url(NamedTuple):
    """The parts of a URL, still escaped except for `user` and `password`, which are None if absent."""

    scheme: str
    user: str | None
    password: str | None
    hosts: str
    path: str
    options: tuple[tuple[str, str], ...]

    @property
    def secrets(self) -> list[str]:
        listed = [unquote(value) for name, value in self.options if is_secret(unquote(name))]
        return listed if self.password is None else [self.password, *listed]

    def text(self, options: Iterable[tuple[str, str]], *, password: bool = False) -> str:
        user = "" if self.user is None else quote(self.user, safe="")
        if password and self.password is not None:
            user += ":" + quote(self.password, safe="")
        query = "&".join(f"{name}={value}" for name, value in options)
        return f"{self.scheme}://{user}{'@' if user else ''}{self.hosts}{self.path}{'?' if query else ''}{query}"

    def __str__(self) -> str:
        return self.text(self.options, password=True)

    @property
    def public(self) -> str:
        """Return the URL without secrets, to be completed with the password."""
        return self.text([(name, value) for name, value in self.options if not _LEFT_OUT.search(unquote(name))])

    @property
    def address(self) -> str:
        """Return scheme, hosts and path only."""
        return f"{self.scheme}://{self.hosts}{self.path}"


def split_url(url: str) -> Url | None:
    """Split the URL of a server; return None if it is malformed or ambiguous."""
    found = _SCHEME.fullmatch(url)
    if found is None or found[2] is None:
        return None
    end = re.search(r"[/?#]", found[3])
    authority, rest = (found[3], "") if end is None else (found[3][: end.start()], found[3][end.start() :])
    login, at, hosts = authority.rpartition("@")
    path, _, query = rest.partition("?")
    pairs = query.split("&") if query else []
    if "@" in rest or "#" in path or not all(_HOSTS.fullmatch(host) for host in hosts.split(",")):
        return None
    if any("=" not in pair for pair in pairs):
        return None
    user, colon, password = login.partition(":")
    options = tuple((name, value) for name, _, value in (pair.partition("=") for pair in pairs))
    return Url(found[1], unquote(user) if at else None, unquote(password) if colon else None, hosts, path, options)


def redact_url(url: str) -> str:
    """Return a URL for display: without its password, and with secret options masked."""
    scheme = _SCHEME.fullmatch(url)
    if scheme is None or scheme[1] == "file":
        return url if "@" not in url else redact(url)
    parts = split_url(url)
    if parts is None:
        is_path = scheme[2] is None and "@" not in url and "=" not in url
        return url if is_path else f"{scheme[1]}://{MASK}"
    return parts.text([(name, MASK if _hidden(name, value) else value) for name, value in parts.options])


def _hidden(name: str, value: str) -> bool:
    """Whether the value of an option is or contains a secret, such as a URL with a password."""
    inner = unquote(value)
    return is_secret(unquote(name)) or "@" in inner or ("=" in inner and is_secret(inner))


def _redact_in_text(url: str) -> str:
    """Redact a URL inside a sentence only if it contains something like a secret, to keep the examples of hints."""
    parts = split_url(url)
    if parts is not None:
        return redact_url(url) if parts.password is not None or parts.secrets else url
    return redact_url(url) if "@" in url or (re.search(r"[?&]", url) and is_secret(url)) else url
