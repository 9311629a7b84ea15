"""Who may call a server, and how, as commands have it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from potok.server.access.audit import Audit
    from potok.server.access.tokens import Tokens
    from potok.server.tls import Tls


class ServerProtection(TypedDict):
    """Arguments of `Server`."""

    tokens: Tokens
    tls: Tls | None
    origins: tuple[str, ...]
    hosts: tuple[str, ...]
    audit: Audit


@dataclass(frozen=True, slots=True)
class Protection:
    """Files of tokens and of a certificate, names, and the audit log. Nothing is read before `load`."""

    tokens: str | Path | None = None
    tls_cert: str | Path | None = None
    tls_key: str | Path | None = None
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    audit_log: str | Path | None = None

    def load(self) -> ServerProtection:
        """Return the arguments of `Server`. Raises `SetupError` if a file cannot be used."""
        from potok.server.access.audit import Audit
        from potok.server.access.tokens import Tokens
        from potok.server.tls import Tls

        return {
            "tokens": Tokens.load(self.tokens),
            "tls": Tls.of(self.tls_cert, self.tls_key),
            "origins": self.origins,
            "hosts": self.hosts,
            "audit": Audit(None if self.audit_log is None else Path(self.audit_log)),
        }
