"""Encrypt and decrypt fields of events with AES-GCM.

A token is base64url of the id of the key, the nonce, and the ciphertext with its tag. The nonce is derived from the
key, the position of the field and the plain text, so a replay writes the same bytes, and no nonce serves two texts. The
id and the source of the event and the name of the field are authenticated: a token cannot be moved.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Any, Protocol

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from potok.events.envelope import BadEnvelope
from potok.events.personal.key_store import ID_BYTES, SubjectKey

NONCE_BYTES, TAG_BYTES = 12, 16


class Encrypted(Protocol):
    """What identifies an event: its attributes."""

    @property
    def attributes(self) -> Any: ...


def encrypt(key: SubjectKey, text: bytes, event: Encrypted, field: str) -> str | None:
    """Return the token of a value, given as JSON of `{"value": ...}`; None for a subject that was forgotten."""
    if key.key is None:
        return None
    context = _context(event, field)
    nonce = hmac.digest(_derived(key.key, b"nonce"), context + text, "sha256")[:NONCE_BYTES]
    sealed = AESGCM(_derived(key.key, b"encryption")).encrypt(nonce, text, context)
    return base64.urlsafe_b64encode(key.id + nonce + sealed).decode()


def key_id(token: Any, field: str) -> bytes:
    """Return the id of the key of a token; raise if it is not one."""
    return _parts(token, field)[0]


def decrypt(token: Any, keys: dict[bytes, bytes | None], event: Encrypted, field: str) -> Any:
    """Return the value of a token; None if its subject was forgotten."""
    id_, nonce, sealed = _parts(token, field)
    if id_ not in keys:
        raise BadEnvelope(
            f'field "{field}" is encrypted with a key that the key store does not have; check personal_keys'
        )
    key = keys[id_]
    if key is None:
        return None
    try:
        text = AESGCM(_derived(key, b"encryption")).decrypt(nonce, sealed, _context(event, field))
        return orjson.loads(text)["value"]
    except (InvalidTag, orjson.JSONDecodeError, TypeError, LookupError) as error:
        raise BadEnvelope(
            f'field "{field}" cannot be decrypted: it was changed, or belongs to another event'
        ) from error


def _parts(token: Any, field: str) -> tuple[bytes, bytes, bytes]:
    try:
        if not isinstance(token, str):
            raise ValueError
        data = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise BadEnvelope(f'field "{field}" is not encrypted, although the envelope says so') from error
    if len(data) < ID_BYTES + NONCE_BYTES + TAG_BYTES:
        raise BadEnvelope(f'field "{field}" is not encrypted, although the envelope says so')
    return data[:ID_BYTES], data[ID_BYTES : ID_BYTES + NONCE_BYTES], data[ID_BYTES + NONCE_BYTES :]


def _context(event: Encrypted, field: str) -> bytes:
    return _joined([str(event.attributes["source"]), str(event.attributes["id"]), field])


def _joined(texts: Sequence[str]) -> bytes:
    parts = [text.encode(errors="surrogatepass") for text in texts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _derived(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, purpose, "sha256")
