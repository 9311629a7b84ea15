"""Sign webhooks as https://www.standardwebhooks.com describes: `v1` is HMAC-SHA256, `v1a` is ed25519."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from potok.errors import SetupError, TopologyError
from potok.extras import need_extra
from potok.redact import remember

SECRET_PREFIX = "whsec_"
PRIVATE_PREFIX = "whsk_"
PUBLIC_PREFIX = "whpk_"

ID_HEADER, TIME_HEADER, SIGNATURE_HEADER = "webhook-id", "webhook-timestamp", "webhook-signature"

_SHORTEST = 16
"""The least bytes of a symmetric key; the specification asks for 24 to 64."""


class SecretMissing(SetupError):
    """A secret that is named, but not there."""


def read_secret(text: str) -> str:
    """Return a secret: the text itself, `env:NAME` or `file:PATH`."""
    kind, colon, rest = text.partition(":")
    if colon and kind == "env":
        if rest not in os.environ:
            raise SecretMissing(f"the environment variable {rest} with a secret is not set", hint=f"export {rest}=...")
        return os.environ[rest]
    if colon and kind == "file":
        try:
            return Path(rest).read_text().strip()
        except OSError as error:
            raise SecretMissing(f"the file {rest} with a secret cannot be read: {error.strerror}") from error
    return text


def decode_key(text: str) -> bytes:
    """Decode the key of a secret without its prefix."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TopologyError(
            "a secret of Standard Webhooks is not base64", hint='it looks like "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"'
        ) from error


def signed_content(identifier: str, stamp: str, body: bytes) -> bytes:
    """Return the bytes that a signature covers."""
    return b"%b.%b.%b" % (identifier.encode(), stamp.encode(), body)


class Signer:
    """Signs with every secret of an endpoint, so that its owner can rotate them."""

    def __init__(self, secrets: Sequence[str]) -> None:
        found = [read_secret(secret) for secret in secrets]
        remember(*found)
        self._keys = [_symmetric_key(secret) for secret in found if not secret.startswith(PRIVATE_PREFIX)]
        self._private = [_private_key(secret) for secret in found if secret.startswith(PRIVATE_PREFIX)]

    def headers(self, identifier: str, now_s: int, body: bytes) -> dict[str, str]:
        """Return the headers of one attempt: the id stays the same, time and signature are those of the attempt."""
        stamp = str(now_s)
        content = signed_content(identifier, stamp, body)
        macs = [("v1", hmac.digest(key, content, hashlib.sha256)) for key in self._keys]
        signatures = [("v1a", key.sign(content)) for key in self._private]
        texts = [f"{version},{base64.b64encode(each).decode()}" for version, each in (*macs, *signatures)]
        signed = {SIGNATURE_HEADER: " ".join(texts)} if texts else {}
        return {ID_HEADER: identifier, TIME_HEADER: stamp, **signed}


def _symmetric_key(secret: str) -> bytes:
    if secret.startswith(PUBLIC_PREFIX):
        raise TopologyError(
            "a public key cannot sign", hint=f'write the private key, "{PRIVATE_PREFIX}" and 32 bytes in base64'
        )
    key = decode_key(secret.removeprefix(SECRET_PREFIX))
    if len(key) < _SHORTEST:
        raise TopologyError(
            f"a webhook secret has {len(key)} bytes, which is too short",
            hint=f'use 24 to 64 random bytes: "{SECRET_PREFIX}" and the output of openssl rand -base64 32',
        )
    return key


def _private_key(secret: str) -> Any:
    need_extra("a webhook with an ed25519 signature", "webhooks")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    data = decode_key(secret.removeprefix(PRIVATE_PREFIX))
    if len(data) not in (32, 64):
        raise TopologyError(
            "an ed25519 private key has 32 bytes, or 64 with its public key",
            hint=f'write "{PRIVATE_PREFIX}" and the key in base64',
        )
    return Ed25519PrivateKey.from_private_bytes(data[:32])
