"""URIs as the JVM parses them: RFC 2396 with IPv6 hosts, and letters beyond ASCII wherever letters are allowed."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

_OTHER: Final = r"[^\x00-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_ESCAPED: Final = r"%[0-9A-Fa-f]{2}"
_MARKS: Final = r"a-zA-Z0-9_\-!.~'()*"


def _all_of(signs: str) -> re.Pattern[str]:
    return re.compile(f"(?:[{_MARKS}{signs}]|{_ESCAPED}|{_OTHER})*")


_PATH: Final = _all_of(":@&=+$,;/")
_QUERY: Final = _all_of(r";/?:@&=+$,\[\]")
_REGISTRY: Final = _all_of("$,;:@&=+")
_USER: Final = _all_of(";:&=+$,")
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+\-.]*")
_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}\.?|(?:{_LABEL}\.)+[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.?")
_IPV4: Final = re.compile(
    r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|0*[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|0*[1-9]?\d)", re.ASCII
)
_SERVER: Final = re.compile(r"(?:(?P<user>[^@]*)@)?(?P<host>\[[^\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]*))?")
_SPLIT: Final = re.compile(r"(?:([^:/?#]*):)?([^#]*)(?:#(.*))?", re.DOTALL)
_LARGEST_PORT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Uri:
    """The parts that are there, decoded."""

    scheme: str | None = None
    host: str | None = None
    port: int | None = None
    path: str | None = None
    query: str | None = None
    fragment: str | None = None


def parse_uri(text: str) -> Uri:
    """Raises ValueError for what is not a URI."""
    split = _SPLIT.fullmatch(text)
    if split is None:
        raise _wrong(text)
    scheme, rest, fragment = split.groups()
    if (scheme is not None and not _SCHEME.fullmatch(scheme)) or not _QUERY.fullmatch(fragment or ""):
        raise _wrong(text)
    if scheme is not None and not rest.startswith("/"):
        if not rest or not _QUERY.fullmatch(rest):
            raise _wrong(text)
        return Uri(scheme, fragment=_decoded(fragment))
    host, port = None, None
    if rest.startswith("//"):
        authority = re.split("[/?]", rest[2:], maxsplit=1)[0]
        rest = rest[2 + len(authority) :]
        if authority:
            host, port = _server(authority, text)
        elif not rest and fragment is None:
            raise _wrong(text)
    path, mark, query = rest.partition("?")
    if not _PATH.fullmatch(path) or not _QUERY.fullmatch(query):
        raise _wrong(text)
    return Uri(scheme, host, port, _decoded(path), _decoded(query) if mark else None, _decoded(fragment))


def _server(authority: str, text: str) -> tuple[str | None, int | None]:
    """Host and port; neither, if the authority is a name that no host can have, such as one with an underscore."""
    found = _SERVER.fullmatch(authority)
    port = int(found["port"]) if found and found["port"] else None
    if found and _is_host(found["host"]) and _USER.fullmatch(found["user"] or "") and (port or 0) <= _LARGEST_PORT:
        return found["host"], port
    if not _REGISTRY.fullmatch(authority):
        raise _wrong(text)
    return None, None


def _is_host(host: str) -> bool:
    if host.startswith("["):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return False
        return True
    return bool(_IPV4.fullmatch(host) or _HOST.fullmatch(host))


def _decoded(text: str | None) -> str | None:
    return text if text is None else unquote(text, errors="replace")


def _wrong(text: str) -> ValueError:
    return ValueError(f"'{text}' is not a URL")
