"""The request of a page, as data: its body has been read before the page is called."""

from __future__ import annotations

import email.parser
import email.policy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

from potok.faust.pages.errors import ParseError, UnsupportedMediaType

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


class Values(Mapping[str, Any]):
    """Values by name, of which a name may have several: `values[name]` is the first, `getall` returns them all."""

    def __init__(self, pairs: Iterable[tuple[str, Any]] = (), *, any_case: bool = False) -> None:
        self._any_case = any_case
        self._pairs = [(self._folded(name), value) for name, value in pairs]

    def _folded(self, name: str) -> str:
        return name.lower() if self._any_case else name

    def __getitem__(self, name: str) -> Any:
        wanted = self._folded(name)
        for known, value in self._pairs:
            if known == wanted:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self._pairs))

    def __len__(self) -> int:
        return len(dict(self._pairs))

    def __repr__(self) -> str:
        return f"<Values {self._pairs!r}>"

    def getone(self, name: str, default: Any = None) -> Any:
        return self.get(name, default)

    def getall(self, name: str, default: Any = None) -> list[Any]:
        wanted = self._folded(name)
        found = [value for known, value in self._pairs if known == wanted]
        return found if found or default is None else default


@dataclass(frozen=True, slots=True)
class FileField:
    """A file in a form."""

    name: str
    filename: str
    content_type: str
    file: bytes


@dataclass(slots=True)
class Request:
    """A request, with the attributes that pages of Faust use."""

    method: str
    path: str
    match_info: Mapping[str, str] = field(default_factory=dict)
    query: Values = field(default_factory=Values)
    headers: Values = field(default_factory=lambda: Values(any_case=True))
    body: bytes = b""
    remote: str = ""
    scheme: str = "http"
    app: Any = None

    @classmethod
    def of(
        cls,
        app: Any,
        method: str,
        path: str,
        *,
        parts: Mapping[str, str] | None = None,
        query: Iterable[tuple[str, str]] = (),
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        remote: str = "",
        scheme: str = "http",
    ) -> Request:
        named = Values(headers, any_case=True)
        return cls(method.upper(), path, dict(parts or {}), Values(query), named, body, remote, scheme, app)

    @property
    def host(self) -> str:
        return str(self.headers.get("host", "localhost"))

    @property
    def query_string(self) -> str:
        return urlencode([(name, value) for name in self.query for value in self.query.getall(name)])

    @property
    def path_qs(self) -> str:
        return f"{self.path}?{self.query_string}" if self.query else self.path

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.path_qs}"

    @property
    def rel_url(self) -> str:
        return self.path_qs

    @property
    def content_type(self) -> str:
        return str(self.headers.get("content-type", "application/octet-stream")).partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        for part in str(self.headers.get("content-type", "")).split(";")[1:]:
            name, _, value = part.strip().partition("=")
            if name.lower() == "charset":
                return value.strip('"') or "utf-8"
        return "utf-8"

    @property
    def content_length(self) -> int:
        return len(self.body)

    @property
    def can_read_body(self) -> bool:
        return bool(self.body)

    body_exists = can_read_body

    @property
    def cookies(self) -> dict[str, str]:
        try:
            return {name: item.value for name, item in SimpleCookie(self.headers.get("cookie", "")).items()}
        except CookieError:
            return {}

    async def read(self) -> bytes:
        return self.body

    async def text(self) -> str:
        try:
            return self.body.decode(self.charset)
        except (UnicodeDecodeError, LookupError) as error:
            raise ParseError(f"the body is not text in {self.charset}") from error

    async def json(self, *, loads: Any = orjson.loads) -> Any:
        try:
            return loads(self.body)
        except ValueError as error:
            raise ParseError(f"the body is not JSON: {error}") from error

    async def post(self) -> Values:
        """Return the fields of a form; a file is a `FileField`."""
        if not self.body:
            return Values()
        if self.content_type == FORM:
            return Values(parse_qsl(await self.text(), keep_blank_values=True))
        if self.content_type == MULTIPART:
            return Values(self._parts())
        raise UnsupportedMediaType(f"a form is {FORM} or {MULTIPART}, not {self.content_type}")

    def _parts(self) -> Iterator[tuple[str, Any]]:
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        parsed = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + self.body)
        if not parsed.is_multipart():
            raise ParseError("the parts of the form cannot be separated")
        for part in parsed.iter_parts():
            name, filename = part.get_param("name", header="content-disposition"), part.get_filename()
            data = part.get_payload(decode=True)
            if not isinstance(name, str) or not isinstance(data, bytes):
                raise ParseError("a part of the form has no name")
            if filename is None:
                yield name, data.decode(errors="replace")
            else:
                yield name, FileField(name, filename, part.get_content_type(), data)
