"""The client of a schema registry: schemas by id, subjects, and registration, each asked for once per process."""

from __future__ import annotations

import functools
import threading
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from potok.records.schema_registry.connection import Connection
from potok.records.schema_registry.errors import NoSuchSubject, RegistryRefused, RegistryUnreachable, UnknownSchema
from potok.retry_policy import BRIEFLY_MS, is_brief

_TIMEOUT_S = 10.0
_MOST_BYTES = 4 << 20
_MOST_SCHEMAS = 4096
_OK, _NOT_FOUND = 200, 404
_REFUSALS = (400, 401, 403, 405, 409, 422)
_TYPE = "application/vnd.schemaregistry.v1+json"
_DEEPEST_REFERENCE = 50

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses: `name` is how that one calls it."""

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema of the registry. `id` is 0 if only its GUID is known."""

    id: int
    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    guid: str = ""

    @property
    def shown(self) -> int | str:
        """Return the id or GUID, for messages."""
        return self.guid or self.id


class RegistryClient:
    """Thread-safe. What an id, or a version of a subject, means never changes, so it is cached forever."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._pool: urllib3.PoolManager | None = None
        self._lock = threading.Lock()
        self._cache: dict[tuple[Any, ...], Registered] = {}

    def schema(self, number: int) -> Registered:
        """Return the schema of an id. Raises `UnknownSchema`."""
        return self._cached(("id", number), lambda: self._of_id(f"/schemas/ids/{number}", number, f"schema {number}"))

    def schema_by_guid(self, guid: str) -> Registered:
        """Return the schema of a GUID. Raises `UnknownSchema`."""
        return self._cached(("guid", guid), lambda: self._of_guid(guid))

    def version(self, subject: str, version: int) -> Registered:
        """Return a version of a subject. Raises `NoSuchSubject`."""
        return self._cached(("version", subject, version), lambda: self._of_subject(subject, str(version)))

    def latest(self, subject: str) -> Registered:
        """Return the latest schema of a subject, which is not cached. Raises `NoSuchSubject`."""
        return self._of_subject(subject, "latest")

    def current(self, subject: str) -> Registered:
        """Return the schema of a subject that was the latest when this process first wrote to it."""
        return self._cached(("current", subject), lambda: self.latest(subject))

    def has_subject(self, subject: str) -> bool:
        """Return whether a subject has a schema."""
        try:
            self.latest(subject)
        except NoSuchSubject:
            return False
        return True

    def register(self, subject: str, kind: str, text: str, references: tuple[Reference, ...] = ()) -> Registered:
        """Return the id of a schema under a subject, registered if it is new. Raises `RegistryRefused`, with the
        message of the registry, if it is incompatible."""
        key = ("registered", subject, kind, text, references)
        return self._cached(key, lambda: self._register(subject, kind, text, references))

    def referenced(self, schema: Registered) -> list[tuple[str, Registered]]:
        """Return the schemas that a schema refers to, by name, directly or not: those that others need come first."""
        found: dict[str, Registered] = {}
        self._collect(schema, found, 0)
        return list(found.items())

    def _collect(self, schema: Registered, found: dict[str, Registered], depth: int) -> None:
        if depth > _DEEPEST_REFERENCE:
            raise UnknownSchema(
                f"the references of schema {schema.shown} are nested more than {_DEEPEST_REFERENCE} deep"
            )
        for reference in schema.references:
            if reference.name not in found:
                try:
                    inner = self.version(reference.subject, reference.version)
                except NoSuchSubject as error:
                    raise UnknownSchema(
                        f'schema {schema.shown} refers to "{reference.name}": {error.message}'
                    ) from error
                self._collect(inner, found, depth + 1)
                found[reference.name] = inner

    def _cached(self, key: tuple[Any, ...], ask: Any) -> Registered:
        found = self._cache.get(key)
        if found is None:
            found = ask()
            if len(self._cache) >= _MOST_SCHEMAS:
                self._cache.clear()
            self._cache[key] = found
        return found

    def _of_id(self, path: str, number: int, name: str) -> Registered:
        status, found = self._ask("GET", path)
        # A registry that knows no GUIDs does not know the path either.
        if status == _NOT_FOUND and (number == 0 or _is_answer(found)):
            raise UnknownSchema(f"the registry has no {name}")
        self._check(f"{name} cannot be read", status, found)
        return self._parsed(found, number)

    def _of_guid(self, guid: str) -> Registered:
        return replace(self._of_id(f"/schemas/guids/{guid}", 0, f"schema {guid}"), guid=guid)

    def _of_subject(self, subject: str, version: str) -> Registered:
        status, found = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        if status == _NOT_FOUND and _is_answer(found):
            raise NoSuchSubject(subject, "" if version == "latest" else f"version {version}")
        self._check(f'subject "{subject}" cannot be read', status, found)
        return self._parsed(found, _integer(found, "id"))

    def _register(self, subject: str, kind: str, text: str, references: tuple[Reference, ...]) -> Registered:
        body: dict[str, object] = {"schema": text}
        if kind != AVRO:
            body["schemaType"] = kind
        if references:
            body["references"] = [reference.as_json() for reference in references]
        status, found = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        self._check(f'the schema of subject "{subject}" cannot be registered', status, found)
        number = _integer(found, "id")
        if number is None:
            raise RegistryUnreachable(self.connection.url, "the answer is not one of a schema registry")
        return Registered(number, kind, text, references)

    def _parsed(self, found: Any, number: int | None) -> Registered:
        try:
            references = tuple(
                Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
                for one in found.get("references") or ()
            )
            text, kind = found["schema"], found.get("schemaType") or AVRO
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RegistryUnreachable(self.connection.url, "the answer is not one of a schema registry") from error
        if not isinstance(text, str) or number is None:
            raise RegistryUnreachable(self.connection.url, "the answer is not one of a schema registry")
        return Registered(number, str(kind), text, references)

    def _check(self, what: str, status: int, found: Any) -> None:
        if status == _OK:
            return
        message = found.get("message") if isinstance(found, dict) else None
        if status in _REFUSALS:
            raise RegistryRefused(what, status, str(message or "no reason given"))
        why = f"it answers {status}{f': {message}' if message else ''}"
        if status == _NOT_FOUND:
            why += ", and not as a schema registry does: the path of its URL may be wrong"
        raise RegistryUnreachable(self.connection.url, why)

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> tuple[int, Any]:
        """Return status and JSON of an answer. Of several addresses, the first that answers counts."""
        refused: RegistryUnreachable | None = None
        for address in self.connection.addresses:
            try:
                return self._ask_at(address, method, path, body)
            except RegistryUnreachable as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def _ask_at(self, address: str, method: str, path: str, body: Mapping[str, object] | None) -> tuple[int, Any]:
        timeout = BRIEFLY_MS / 1000 if is_brief() else _TIMEOUT_S
        headers = {"Accept": f"{_TYPE}, application/json", **self._login()}
        if body is not None:
            headers["Content-Type"] = _TYPE
        try:
            # A redirect would send the password to another server.
            answer = self._connected().request(
                method,
                address + path,
                body=None if body is None else orjson.dumps(body),
                headers=headers,
                timeout=timeout,
                redirect=False,
                retries=False,
                preload_content=False,
            )
            data = _read(answer)
        except (HTTPError, OSError, ValueError) as error:
            raise RegistryUnreachable(address, _reason(error)) from None
        if len(data) > _MOST_BYTES:
            raise RegistryUnreachable(address, f"its answer is larger than {_MOST_BYTES >> 20} MB")
        try:
            return answer.status, orjson.loads(data)
        except ValueError:
            if answer.status == _OK:
                raise RegistryUnreachable(address, "the answer is not one of a schema registry") from None
            return answer.status, None

    def _login(self) -> dict[str, str]:
        if self.connection.token is not None:
            return {"Authorization": f"Bearer {self.connection.token}"}
        if self.connection.user is None:
            return {}
        text = f"{self.connection.user}:{self.connection.password or ''}"
        return {"Authorization": f"Basic {b64encode(text.encode()).decode()}"}

    def _connected(self) -> urllib3.PoolManager:
        with self._lock:
            if self._pool is None:
                own = self.connection
                given = {
                    "ca_certs": own.ca,
                    "cert_file": own.certificate,
                    "key_file": own.key,
                    "key_password": own.key_password,
                }
                options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
                self._pool = urllib3.PoolManager(maxsize=4, **options)
            return self._pool


def _read(answer: Any) -> bytes:
    """Return the body of an answer, or the beginning of one that is too large."""
    whole = False
    try:
        data: bytes = answer.read(_MOST_BYTES + 1)
        whole = len(data) <= _MOST_BYTES
        return data
    finally:
        if whole:
            answer.release_conn()
        else:
            # The rest of it must not become the beginning of the next answer.
            answer.close()


def _is_answer(found: Any) -> bool:
    """Whether an error is one of a registry. Where there is none, the schemas are not missing: the URL is wrong."""
    return _integer(found, "error_code") is not None


def _integer(found: Any, name: str) -> int | None:
    number = found.get(name) if isinstance(found, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _reason(error: Exception) -> str:
    """Return the cause of an error of the client, which repeats the address."""
    inner = getattr(error, "reason", None) or error
    return str(inner).rpartition(": ")[2] or type(inner).__name__


@functools.lru_cache(maxsize=32)
def client_of(connection: Connection) -> RegistryClient:
    """Return the client of a connection: one in each process."""
    return RegistryClient(connection)
