"""Signatures of outgoing webhooks: what a receiver verifies."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from potok.errors import PotokError, TopologyError
from potok.sinks.webhooks.signing import Signer
from potok.sources.webhooks.signatures import BadSignature, verifier_of

NOW = 1_614_265_330
BODY = b'{"test": 2432232314}'
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"x" * 32).decode()


def verified(secrets: list[str], headers: dict[str, str], body: bytes = BODY) -> None:
    verifier_of("standard", secrets, tolerance_s=300).verify(headers, body, NOW)


def test_the_signature_of_the_specification_is_reproduced() -> None:
    assert Signer([SECRET]).headers("msg_p5jXN8AQM9LWM0D4loKWxJek", NOW, BODY) == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": str(NOW),
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_during_a_rotation_a_receiver_with_either_secret_accepts() -> None:
    headers = Signer([SECRET, OTHER]).headers("msg_1", NOW, BODY)
    verified([SECRET], headers)
    verified([OTHER], headers)
    with pytest.raises(BadSignature):
        verified([OTHER], headers, BODY + b" ")


@pytest.mark.parametrize("with_public", [False, True])
def test_an_ed25519_key_signs_for_the_holder_of_its_public_key(with_public: bool) -> None:
    key = Ed25519PrivateKey.generate()
    seed = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    secret = "whsk_" + base64.b64encode(seed + public if with_public else seed).decode()
    headers = Signer([SECRET, secret]).headers("msg_1", NOW, BODY)
    assert [each.partition(",")[0] for each in headers["webhook-signature"].split()] == ["v1", "v1a"]
    verified(["whpk_" + base64.b64encode(public).decode()], headers)
    verified([SECRET], headers)


def test_a_secret_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    verified([SECRET], Signer(["env:HOOK_SECRET"]).headers("msg_1", NOW, BODY))


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ("whsec_!", "not base64"),
        ("whsec_AAAA", "too short"),
        ("whsk_AAAA", "32 bytes"),
        ("whpk_" + "A" * 44, "a public key cannot sign"),
        ("env:POTOK_NO_SUCH_SECRET", "is not set"),
    ],
)
def test_a_useless_secret_is_refused_without_showing_it(secret: str, why: str) -> None:
    with pytest.raises((TopologyError, PotokError), match=why) as raised:
        Signer([secret])
    assert "A" * 40 not in str(raised.value)
