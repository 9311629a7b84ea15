"""Signatures of webhooks: those of the standards, and their forgeries."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from potok.errors import PotokError
from potok.sources.webhooks.signatures import BadSignature, verifier_of

NOW = 1_614_265_330
BODY = b'{"test": 2432232314}'
KEY = b"0123456789abcdef01234567"
STANDARD = "whsec_" + base64.b64encode(KEY).decode()


def standard(key: bytes, stamp: int, body: bytes = BODY, identifier: str = "msg_1") -> dict[str, str]:
    signed = b"%b.%d.%b" % (identifier.encode(), stamp, body)
    signature = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return {"webhook-id": identifier, "webhook-timestamp": str(stamp), "webhook-signature": f"v1,{signature}"}


def stripe(key: bytes, stamp: int, body: bytes = BODY) -> dict[str, str]:
    return {"stripe-signature": f"t={stamp},v1={hmac.digest(key, b'%d.%b' % (stamp, body), 'sha256').hex()}"}


def verify(scheme: str, secrets: list[str], headers: dict[str, str], body: bytes = BODY, **options: Any) -> None:
    verifier_of(scheme, secrets, tolerance_s=300, **options).verify(headers, body, NOW)


def test_the_example_of_standard_webhooks_verifies() -> None:
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    verify("standard", ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], headers)


def test_any_of_several_secrets_and_of_several_signatures_may_match() -> None:
    headers = standard(KEY, NOW)
    headers["webhook-signature"] = "v1,AAAA v2,x " + headers["webhook-signature"]
    verify("standard", ["whsec_" + base64.b64encode(b"old").decode(), STANDARD], headers)


def test_an_ed25519_signature_verifies() -> None:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    secret = "whpk_" + base64.b64encode(public).decode()
    signed = b"msg_1.%d.%b" % (NOW, BODY)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(NOW),
        "webhook-signature": "v1a," + base64.b64encode(private.sign(signed)).decode(),
    }
    verify("standard", [secret], headers)
    with pytest.raises(BadSignature):
        verify("standard", [secret], headers, BODY + b" ")


@pytest.mark.parametrize("seconds", [-300, 300])
def test_a_signature_within_the_tolerance_is_accepted(seconds: int) -> None:
    verify("standard", [STANDARD], standard(KEY, NOW + seconds))
    verify("stripe", ["k"], stripe(b"k", NOW + seconds))


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_signature_from_another_time_is_refused(seconds: int) -> None:
    for scheme, secret, headers in (
        ("standard", STANDARD, standard(KEY, NOW + seconds)),
        ("stripe", "k", stripe(b"k", NOW + seconds)),
    ):
        with pytest.raises(BadSignature, match="from another time"):
            verify(scheme, [secret], headers)


def test_github_and_generic_signatures_verify() -> None:
    digest = hmac.digest(b"k", BODY, "sha256").hex()
    verify("github", ["k"], {"x-hub-signature-256": f"sha256={digest}"})
    encoded = base64.b64encode(hmac.digest(b"k", BODY, hashlib.sha512)).decode()
    options = {"header": "X-Sig", "algorithm": "sha512", "encoding": "base64", "prefix": "v0="}
    verify("hmac", ["k"], {"x-sig": f"v0={encoded}"}, **options)


@pytest.mark.parametrize(
    ("scheme", "headers"),
    [
        ("standard", {}),
        ("standard", standard(b"another key", NOW)),
        ("standard", {**standard(KEY, NOW), "webhook-id": "msg_2"}),
        ("standard", {**standard(KEY, NOW), "webhook-timestamp": str(NOW + 1)}),
        ("standard", {**standard(KEY, NOW), "webhook-timestamp": "9" * 400}),
        ("standard", {**standard(KEY, NOW), "webhook-timestamp": "\u0661\u0662"}),
        ("standard", {**standard(KEY, NOW), "webhook-signature": ""}),
        ("standard", {**standard(KEY, NOW), "webhook-signature": "v1,not base64"}),
        ("standard", {**standard(KEY, NOW), "webhook-signature": "v1a," + "A" * 86 + "=="}),
        ("stripe", {"stripe-signature": ""}),
        ("stripe", {"stripe-signature": f"t={NOW}"}),
        ("stripe", {"stripe-signature": stripe(b"k", NOW)["stripe-signature"] + f",t={NOW - 5}"}),
        ("stripe", {"stripe-signature": stripe(b"other", NOW)["stripe-signature"]}),
        ("github", {"x-hub-signature-256": "sha256="}),
        ("github", {"x-hub-signature-256": hmac.digest(b"k", BODY, "sha256").hex()}),
        ("github", {"x-hub-signature-256": "sha256=" + hmac.digest(b"k", b"", "sha256").hex()}),
    ],
)
def test_forged_signatures_are_refused(scheme: str, headers: dict[str, str]) -> None:
    with pytest.raises(BadSignature):
        verify(scheme, [STANDARD] if scheme == "standard" else ["k"], headers)


@pytest.mark.parametrize(
    ("scheme", "secrets", "message"),
    [
        ("rot13", ["x"], 'there is no signature "rot13"'),
        ("github", [], "needs a secret"),
        ("github", [""], "needs a secret"),
        ("none", ["x"], "has no secrets"),
        ("hmac", ["x"], "needs a header"),
        ("standard", ["whsec_not base64"], "not base64"),
        ("standard", ["whpk_AAAA"], "has 32 bytes"),
        ("github", ["env:NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE with a secret is not set"),
        ("github", ["file:/not/there"], "cannot be read"),
    ],
)
def test_options_that_cannot_work_are_refused(scheme: str, secrets: list[str], message: str) -> None:
    with pytest.raises(PotokError, match=message):
        verifier_of(scheme, secrets, tolerance_s=300)


def test_secrets_come_from_the_environment_and_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", "from env")
    (tmp_path / "secret").write_text("from file\n")
    for secret in ("from env", "from file"):
        digest = hmac.digest(secret.encode(), BODY, "sha256").hex()
        verify("github", ["env:HOOK_SECRET", f"file:{tmp_path}/secret"], {"x-hub-signature-256": f"sha256={digest}"})
