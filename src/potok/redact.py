"""Secrets stay out of everything that is shown, logged or written down: the only place that takes them out of texts.

A URL is taken apart by the first `/`, `?` or `#`. One that could be read in two ways, because a password holds such a
character as it is, is shown as its scheme alone, and opened by nobody (`split_url`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote

MASK = "***"

_SECRET_NAMES = re.compile(r"passw|passphrase|secret|jaas|key|token|credential|authorization|cookie", re.IGNORECASE)

_LEFT_OUT = re.compile(r"passw|passphrase|secret|token|credential|scram_\w+_key", re.IGNORECASE)
"""Of these, what is left out of a URL that is written down for others to open: the path of a key is not."""

SHORTEST = 4
"""Shorter words are not looked for in texts of others: too many of them mean something else."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?(.*)", re.DOTALL)
_HOSTS = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^\s:@\[\]]*)(:\d*)?")
_IN_TEXT = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>`]+")

_known: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether an option of this name holds a secret."""
    return _SECRET_NAMES.search(name) is not None


def remember(*secrets: str) -> None:
    """Take these out of every text from now on, however they are escaped in it."""
    for secret in secrets:
        plain = unquote(secret)
        for text in (secret, plain):
            escaped = quote(text, safe=""), quote(text), quote_plus(text), repr(text)[1:-1], json.dumps(text)[1:-1]
            _known.update(form for form in (text, *escaped) if len(form) >= SHORTEST)


def remember_options(options: Mapping[str, str]) -> None:
    """The same for the options that hold secrets by their names."""
    remember(*(value for name, value in options.items() if is_secret(name)))


def redact(text: str) -> str:
    """A text without the secrets that this process knows, and without the passwords of URLs in it."""
    for secret in sorted(_known, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, MASK)
    return _IN_TEXT.sub(lambda found: _redact_in_text(found[0]), text) if "://" in text else text


def safe_cause(error: BaseException) -> BaseException | None:
    """For `raise ... from`: an error of somebody else, unless a traceback would show a secret with it."""
    return error if redact(str(error)) == str(error) else None


class Url(NamedTuple):
    """The parts of a URL as they stand in it; `user` and `password` decoded, None where there are none."""

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
        """Without secrets; whoever knows the password can open it."""
        return self.text([(name, value) for name, value in self.options if not _LEFT_OUT.search(unquote(name))])

    @property
    def address(self) -> str:
        """The server and what is asked of it, without who asks."""
        return f"{self.scheme}://{self.hosts}{self.path}"


def split_url(url: str) -> Url | None:
    """The parts of a URL of a server; None for one that is none, or can be read in two ways."""
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
    """A URL for people: without its password, and with a mask for each option that holds a secret."""
    scheme = _SCHEME.fullmatch(url)
    if scheme is None or scheme[1] == "file":
        return url if "@" not in url else redact(url)
    parts = split_url(url)
    if parts is None:
        is_path = scheme[2] is None and "@" not in url and "=" not in url
        return url if is_path else f"{scheme[1]}://{MASK}"
    return parts.text([(name, MASK if _hidden(name, value) else value) for name, value in parts.options])


def _hidden(name: str, value: str) -> bool:
    """Whether an option has a secret for its value, or in it: a URL with a password, other options."""
    inner = unquote(value)
    return is_secret(unquote(name)) or "@" in inner or ("=" in inner and is_secret(inner))


def _redact_in_text(url: str) -> str:
    """A URL in a sentence: an example in a hint stays as it is, so only what looks like a secret is masked."""
    parts = split_url(url)
    if parts is not None:
        return redact_url(url) if parts.password is not None or parts.secrets else url
    return redact_url(url) if "@" in url or (re.search(r"[?&]", url) and is_secret(url)) else url
