"""Signatures of webhooks, verified over the raw body, in constant time."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.sinks.webhooks.signing import (
    ID_HEADER,
    PUBLIC_PREFIX,
    SECRET_PREFIX,
    SIGNATURE_HEADER,
    TIME_HEADER,
    decode_key,
    read_secret,
    signed_content,
)

Headers = Mapping[str, str]
"""By lower-case name."""

SCHEMES = ("standard", "stripe", "github", "hmac", "none")
HASHES = ("sha256", "sha512", "sha1")
ENCODINGS = ("hex", "base64")


class BadSignature(Exception):
    """A request that is not signed with a known secret."""


class Verifier(ABC):
    """Checks that a request was signed by a holder of one of several secrets."""

    @abstractmethod
    def verify(self, headers: Headers, body: bytes, now_s: float) -> None:
        """Raise `BadSignature`."""


class Unsigned(Verifier):
    """Accepts every request."""

    def verify(self, headers: Headers, body: bytes, now_s: float) -> None:
        pass


class StandardWebhooks(Verifier):
    """https://www.standardwebhooks.com: `v1` is HMAC-SHA256, `v1a` is ed25519."""

    def __init__(self, secrets: Sequence[str], tolerance_s: float) -> None:
        self._tolerance_s = tolerance_s
        self._keys = [decode_key(s.removeprefix(SECRET_PREFIX)) for s in secrets if not s.startswith(PUBLIC_PREFIX)]
        self._public = [_public_key(s) for s in secrets if s.startswith(PUBLIC_PREFIX)]

    def verify(self, headers: Headers, body: bytes, now_s: float) -> None:
        identifier, stamp = _header(headers, ID_HEADER), _header(headers, TIME_HEADER)
        _check_time(stamp, now_s, self._tolerance_s)
        signed = signed_content(identifier, stamp, body)
        for signature in _header(headers, SIGNATURE_HEADER).split():
            version, _, encoded = signature.partition(",")
            given = _given(encoded, "base64")
            if version == "v1" and _matches(self._keys, "sha256", signed, given):
                return
            if version == "v1a" and any(_is_signed(key, given, signed) for key in self._public):
                return
        raise BadSignature("no signature in webhook-signature matches")


class Stripe(Verifier):
    """`Stripe-Signature: t=...,v1=...`: HMAC-SHA256 of the time and the body."""

    def __init__(self, secrets: Sequence[str], tolerance_s: float) -> None:
        self._keys, self._tolerance_s = [secret.encode() for secret in secrets], tolerance_s

    def verify(self, headers: Headers, body: bytes, now_s: float) -> None:
        parts = [part.strip().partition("=") for part in _header(headers, "stripe-signature").split(",")]
        stamps = [value for name, _, value in parts if name == "t"]
        if len(stamps) != 1:
            raise BadSignature("stripe-signature has no time t=")
        _check_time(stamps[0], now_s, self._tolerance_s)
        signed = b"%b.%b" % (stamps[0].encode(), body)
        for name, _, value in parts:
            if name == "v1" and _matches(self._keys, "sha256", signed, _given(value, "hex")):
                return
        raise BadSignature("no v1 in stripe-signature matches")


class Hmac(Verifier):
    """An HMAC of the body alone in a header, as GitHub and many others send it. It does not protect against replays."""

    def __init__(self, secrets: Sequence[str], header: str, algorithm: str, encoding: str, prefix: str) -> None:
        self._keys = [secret.encode() for secret in secrets]
        self._header, self._algorithm, self._encoding, self._prefix = header.lower(), algorithm, encoding, prefix

    def verify(self, headers: Headers, body: bytes, now_s: float) -> None:
        value = _header(headers, self._header)
        if not value.startswith(self._prefix):
            raise BadSignature(f"{self._header} does not start with {self._prefix}")
        given = _given(value[len(self._prefix) :], self._encoding)
        if not _matches(self._keys, self._algorithm, body, given):
            raise BadSignature(f"{self._header} does not match")


def verifier_of(
    scheme: str,
    secrets: Sequence[str],
    *,
    tolerance_s: float,
    header: str | None = None,
    algorithm: str = "sha256",
    encoding: str = "hex",
    prefix: str = "",
) -> Verifier:
    """Return the verifier of a scheme."""
    if scheme not in SCHEMES:
        raise TopologyError(f'there is no signature "{scheme}"', hint=f"use one of {', '.join(SCHEMES)}")
    if scheme == "none":
        if secrets:
            raise TopologyError('signature = "none" has no secrets', hint="remove secrets, or name the signature")
        return Unsigned()
    found = [read_secret(secret) for secret in secrets]
    if not found or not all(found):
        hint = 'write secrets = ["env:WEBHOOK_SECRET"]; several secrets let you rotate them'
        raise TopologyError(f'signature "{scheme}" needs a secret', hint=hint)
    if scheme == "standard":
        return StandardWebhooks(found, tolerance_s)
    if scheme == "stripe":
        return Stripe(found, tolerance_s)
    if scheme == "github":
        return Hmac(found, "x-hub-signature-256", "sha256", "hex", "sha256=")
    if header is None:
        raise TopologyError('signature "hmac" needs a header', hint='write signature_header = "X-Signature"')
    for name, value, allowed in (("signature_hash", algorithm, HASHES), ("signature_encoding", encoding, ENCODINGS)):
        if value not in allowed:
            raise TopologyError(f'there is no {name} "{value}"', hint=f"use one of {', '.join(allowed)}")
    return Hmac(found, header, algorithm, encoding, prefix)


def _matches(keys: Sequence[bytes], algorithm: str, signed: bytes, given: bytes) -> bool:
    """Compare with each key: all of them, so that the timing does not reveal which one matched."""
    found = [hmac.compare_digest(hmac.digest(key, signed, getattr(hashlib, algorithm)), given) for key in keys]
    return any(found)


def _is_signed(key: Any, signature: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _public_key(text: str) -> Any:
    need_extra("a webhook with an ed25519 signature", "webhooks")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    data = decode_key(text.removeprefix(PUBLIC_PREFIX))
    if len(data) != 32:
        raise TopologyError("an ed25519 public key has 32 bytes", hint=f'write "{PUBLIC_PREFIX}" and the key in base64')
    return Ed25519PublicKey.from_public_bytes(data)


def _given(text: str, encoding: str) -> bytes:
    try:
        return bytes.fromhex(text) if encoding == "hex" else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _header(headers: Headers, name: str) -> str:
    if name not in headers:
        raise BadSignature(f"the header {name} is missing")
    return headers[name]


def _check_time(text: str, now_s: float, tolerance_s: float) -> None:
    """Refuse a signature from another time, which may be a replay."""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise BadSignature("the time of the signature is not a number of seconds")
    if abs(now_s - int(text)) > tolerance_s:
        raise BadSignature("the signature is from another time; check the clocks")
