"""TLS of a server: its certificate, and its renewal without a restart."""

from __future__ import annotations

import logging
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

from potok.errors import SetupError

log = logging.getLogger(__name__)

LOOK_S = 5.0
"""How often the files are checked for a renewed certificate."""

PROTOCOLS = ("h2", "http/1.1")
"""What clients may choose (ALPN)."""


class BadCertificate(SetupError):
    """The certificate or its key cannot be used."""

    def __init__(self, tls: Tls, error: Exception) -> None:
        why = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
        super().__init__(
            f"cannot use the certificate {tls.cert} with the key {tls.key}: {why}",
            hint="name PEM files of one pair: the certificate with its chain, and its unencrypted private key",
        )


class TlsWithoutKey(SetupError):
    """One of the two options is missing."""

    def __init__(self) -> None:
        super().__init__("a certificate needs its key, and a key its certificate", hint="give both, as PEM files")


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: the certificate with its chain, and its private key without a password."""

    cert: Path
    key: Path

    @classmethod
    def of(cls, cert: str | Path | None, key: str | Path | None) -> Tls | None:
        """Return None if neither is given; raises if only one is."""
        if cert is None and key is None:
            return None
        if cert is None or key is None:
            raise TlsWithoutKey
        return cls(Path(cert), Path(key))

    def context(self) -> ssl.SSLContext:
        """Return a context for a server: TLS 1.2 and later."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(list(PROTOCOLS))
        self.load_into(context)
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        try:
            # Without a callback, OpenSSL would ask for the password of a key at the terminal.
            context.load_cert_chain(self.cert, self.key, password=_no_password)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise BadCertificate(self, error) from error

    def version(self) -> tuple[object, ...]:
        """Return what changes when the files are replaced, also behind a symbolic link."""
        return tuple(_identity(path) for path in (self.cert, self.key))


class CertificateReloader:
    """Loads a renewed certificate into a context: new connections use it, and open ones continue."""

    def __init__(self, tls: Tls, context: ssl.SSLContext, look_s: float = LOOK_S) -> None:
        self._tls, self._context, self._look_s = tls, context, look_s
        self._seen = tls.version()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="potok-certificate", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def look(self) -> bool:
        """Load the files if they have changed; return whether a certificate was loaded. Files that do not fit together
        leave the previous certificate in use: they may be half replaced."""
        seen = self._tls.version()
        if seen == self._seen:
            return False
        try:
            self._tls.context()  # an error inside the context in use would leave it without a certificate
            self._tls.load_into(self._context)
        except BadCertificate as error:
            log.error("the certificate stays as it was: %s", error.message)
            return False
        self._seen = seen
        log.info("loaded the certificate %s", self._tls.cert)
        return True

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._look_s):
            self.look()


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
