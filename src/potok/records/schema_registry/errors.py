"""What can go wrong with a schema registry, and what follows: a dead letter, a retry, or a query that stops."""

from __future__ import annotations

from potok.errors import PotokError, SchemaError, SetupError
from potok.redact import redact_url


class RegistryUnreachable(PotokError):
    """A schema registry that does not answer, or not as a registry. Retried."""

    passing = True

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"the schema registry at {redact_url(url)} cannot be reached: {why}",
            hint="check its URL, and that the registry runs",
        )


class RegistryRefused(SchemaError):
    """A request that the registry refuses: an incompatible or invalid schema, or a wrong password."""

    def __init__(self, what: str, status: int, message: str, hint: str = "") -> None:
        known = {
            401: "check basic.auth.user.info of the setting schema_registry",
            403: "the user of the setting schema_registry lacks a permission",
            409: "change the schema compatibly, or the compatibility level of the subject",
        }
        super().__init__(f"{what}: the schema registry answers {status}: {message}", hint=hint or known.get(status, ""))
        self.status = status


class NoSuchSubject(SchemaError):
    """A subject, or a version of it, that the registry does not have."""

    def __init__(self, subject: str, message: str = "") -> None:
        super().__init__(
            f'the schema registry has no subject "{subject}"{f" ({message})" if message else ""}',
            hint="register its schema, or declare the columns",
        )


class NoRegistry(SetupError):
    """A format that needs a registry where none is configured."""

    def __init__(self, format_name: str) -> None:
        super().__init__(
            f'format "{format_name}" needs a schema registry, and none is configured',
            hint='write [schema_registry] url = "http://host:8081" in potok.toml, or set POTOK_SCHEMA_REGISTRY_URL',
        )


class UnknownSchema(ValueError):
    """An id for which the registry has no schema, or none that can be used. The records that name it are bad."""


MOST_FIELDS = 10_000


class FieldBudget:
    """Limits how many fields a schema has as columns: a few types that refer to each other may stand for any number."""

    def __init__(self) -> None:
        self._left = MOST_FIELDS

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise UnknownSchema(f"a schema of the registry has more than {MOST_FIELDS} fields")
