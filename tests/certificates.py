"""Certificates of tests: for this machine, by an authority that clients are given."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Issues certificates for localhost and 127.0.0.1."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
        self._certificate = self._signed(self._name, self._key, is_authority=True)

    def write(self, cert: Path, key: Path, name: str = "localhost") -> None:
        """Write a new certificate and its key, in this order, each over the previous file."""
        own = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signed = self._signed(subject, own, is_authority=False)
        plain = serialization.NoEncryption()
        key.write_bytes(
            own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain),
        )
        cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def client(self, *protocols: str) -> ssl.SSLContext:
        """Return a context of a client that trusts this authority."""
        data = self._certificate.public_bytes(serialization.Encoding.PEM).decode()
        context = ssl.create_default_context(cadata=data)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> x509.Certificate:
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        now = datetime.now(UTC)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
            .sign(self._key, hashes.SHA256())
        )
