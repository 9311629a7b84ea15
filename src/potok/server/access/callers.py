"""Who sends a request, and what it may do."""

from __future__ import annotations

from dataclasses import dataclass, field

from potok.server.errors import NotAllowed

CALLER = "potok.caller"
"""Scope key of the sender of a request."""

READ, WRITE, ADMIN = SCOPES = ("read", "write", "admin")


@dataclass(frozen=True, slots=True)
class Caller:
    """Sender of a request.

    A scope is `read`, `write` or `admin`, which includes the others; `read:orders-` holds only for topics, streams,
    tables, queries, sagas, aggregates and pages whose names begin so. Case does not matter, because SQL folds names.

    Args:
        per_second: The maximum number of requests per second; None for the default of the server.
    """

    name: str
    scopes: frozenset[str]
    per_second: float | None = None
    _prefixes: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = [(scope, prefix.upper()) for scope, _, prefix in (text.partition(":") for text in self.scopes)]
        found = {
            scope: tuple(sorted({prefix for granted, prefix in given if granted in (scope, ADMIN)})) for scope in SCOPES
        }
        object.__setattr__(self, "_prefixes", found)

    def may(self, scope: str, *names: str) -> bool:
        """Whether the scope holds for all of these names; without names, for everything."""
        prefixes = self._prefixes[scope]
        if prefixes and not prefixes[0]:
            return True
        return bool(names) and all(name.upper().startswith(prefixes) for name in names)

    def may_some(self, scope: str) -> bool:
        """Whether the scope holds for some names. What is listed has to be filtered."""
        return bool(self._prefixes[scope])

    def require(self, scope: str, *names: str) -> None:
        if not self.may(scope, *names):
            refused = next((name for name in names if not self.may(scope, name)), "")
            raise NotAllowed(scope, self.name, refused, is_limited=self.may_some(scope))

    def require_some(self, scope: str) -> None:
        if not self.may_some(scope):
            raise NotAllowed(scope, self.name)


ANYBODY = Caller("anybody", frozenset(SCOPES))
"""Sender on this machine if no tokens are configured."""
