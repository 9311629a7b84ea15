"""Credentials for Kafka: those of Faust as options of the Kafka client."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from potok.errors import SetupError
from potok.extras import need_extra
from potok.redact import remember_options

Options = dict[str, str]
"""As in [kafka] of potok.toml."""


class CannotLogIn(SetupError):
    """Credentials that the Kafka client does not support."""


class Credentials(ABC):
    """The type of `App(broker_credentials=)`."""

    @abstractmethod
    def options(self) -> Options:
        """Return the options of the Kafka client."""


class SASLCredentials(Credentials):
    """A user and a password; encrypted, if an SSL context is given.

    >>> app = App("shop", broker_credentials=SASLCredentials(username="shop", password=read_password()))
    """

    def __init__(
        self,
        *,
        username: str | None = None,
        password: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        mechanism: Any = "PLAIN",
    ) -> None:
        self.username, self.password, self.ssl_context = username, password, ssl_context
        self.mechanism = str(getattr(mechanism, "value", mechanism) or "PLAIN")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: username={self.username}>"

    def options(self) -> Options:
        named = {"sasl.username": self.username, "sasl.password": self.password}
        given = {name: value for name, value in named.items() if value is not None}
        remember_options(given)
        return {**_protocol("SASL", self.ssl_context), "sasl.mechanism": self.mechanism, **given}


class GSSAPICredentials(Credentials):
    """A Kerberos ticket."""

    def __init__(
        self,
        *,
        kerberos_service_name: str = "kafka",
        kerberos_domain_name: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        mechanism: Any = "GSSAPI",
    ) -> None:
        self.kerberos_service_name, self.kerberos_domain_name = kerberos_service_name, kerberos_domain_name
        self.ssl_context = ssl_context
        self.mechanism = str(getattr(mechanism, "value", mechanism) or "GSSAPI")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: kerberos service={self.kerberos_service_name!r}>"

    def options(self) -> Options:
        need_extra("Kafka", "kafka")
        from potok.log.kafka.options import has_mechanism  # loads the Kafka client

        if not has_mechanism(self.mechanism):
            raise CannotLogIn(
                f"Kafka's client was built without {self.mechanism}",
                hint="install it from its sources with libsasl2: pip install --no-binary confluent-kafka "
                "confluent-kafka; or log in with SASLCredentials",
            )
        service = {"sasl.kerberos.service.name": self.kerberos_service_name}
        return {**_protocol("SASL", self.ssl_context), "sasl.mechanism": self.mechanism, **service}


class SSLCredentials(Credentials):
    """An encrypted connection: an SSL context, or the trusted certificates."""

    def __init__(
        self,
        context: ssl.SSLContext | None = None,
        *,
        purpose: Any = None,
        cafile: str | Path | None = None,
        capath: str | Path | None = None,
        cadata: str | bytes | None = None,
    ) -> None:
        self.context, self.cafile, self.capath, self.cadata = context, cafile, capath, cadata

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: context={self.context}>"

    def options(self) -> Options:
        if self.context is not None:
            return _protocol("", self.context)
        options = {"security.protocol": "SSL"}
        paths = [str(path) for path in (self.cafile, self.capath) if path is not None]
        if len(paths) + (self.cadata is not None) > 1:
            raise CannotLogIn(
                "the Kafka client reads certificates from one location",
                hint="give one of cafile=, capath= and cadata=; a file may hold many certificates",
            )
        if paths:
            return options | {"ssl.ca.location": paths[0]}
        return options if self.cadata is None else options | {"ssl.ca.pem": _pem(self.cadata)}


def options_of(credentials: Any, context: ssl.SSLContext | None = None) -> Options:
    """Return the options of the Kafka client for `broker_credentials=` and `ssl_context=`; the first one takes
    precedence.
    """
    if credentials is None:
        return {} if context is None else _protocol("", context)
    if isinstance(credentials, ssl.SSLContext):
        return _protocol("", credentials)
    if isinstance(credentials, Credentials):
        return credentials.options()
    raise CannotLogIn(
        f"broker_credentials cannot be a {type(credentials).__name__}",
        hint="write SASLCredentials(username=..., password=...), SSLCredentials(cafile=...) or an ssl.SSLContext",
    )


def _protocol(kind: str, context: ssl.SSLContext | None) -> Options:
    if context is None:
        return {"security.protocol": f"{kind}_PLAINTEXT"}
    return {"security.protocol": f"{kind}_SSL" if kind else "SSL", **_trust(context)}


def _trust(context: ssl.SSLContext) -> Options:
    """Return the certificates that a context trusts. Its own certificate, if it has one, cannot be read from it."""
    if context.verify_mode is ssl.CERT_NONE:
        return {"enable.ssl.certificate.verification": "false"}
    options = {"ssl.endpoint.identification.algorithm": "https" if context.check_hostname else "none"}
    known = context.get_ca_certs(binary_form=True)
    return options | {"ssl.ca.pem": "".join(map(ssl.DER_cert_to_PEM_cert, known))} if known else options


def _pem(data: str | bytes) -> str:
    return data if isinstance(data, str) else ssl.DER_cert_to_PEM_cert(data)
