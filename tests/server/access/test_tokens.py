from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from potok.server.access.tokens import ANYBODY, Tokens
from potok.server.errors import BadTokens, NotAllowed, NoToken

SECRET = "a-token-of-some-length"
OTHER = "another-token-of-length"


def test_a_token_is_known_by_its_bearer_header() -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": f"read={SECRET} read+write={OTHER}"})
    assert tokens.caller(f"Bearer {SECRET}").scopes == {"read"}
    assert tokens.caller(f"bearer {OTHER}").scopes == {"read", "write"}


def test_a_token_may_be_the_password_of_a_user_with_any_name() -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": f"admin={SECRET}"})
    basic = base64.b64encode(f"key:{SECRET}".encode()).decode()
    assert tokens.caller(f"Basic {basic}").scopes == {"admin"}


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", f"Bearer {SECRET}x", f"Token {SECRET}", "Basic !!", "Basic QQ=="]
)
def test_a_request_without_a_token_is_unauthorized(header: str | None) -> None:
    with pytest.raises(NoToken):
        Tokens.load(environ={"POTOK_TOKENS": f"admin={SECRET}"}).caller(header)


def test_without_tokens_every_client_is_authorised() -> None:
    assert Tokens.load(environ={}).caller(None) is ANYBODY


def test_a_file_names_its_tokens_and_may_hold_digests(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(
        f"""
        [[token]]
        name = "dashboard"
        scopes = ["read"]
        sha256 = "{hashlib.sha256(SECRET.encode()).hexdigest()}"

        [[token]]
        name = "ingest"
        scopes = ["write"]
        token = "{OTHER}"
        """
    )
    tokens = Tokens.load(path, environ={})
    assert tokens.caller(f"Bearer {SECRET}").name == "dashboard"
    with pytest.raises(NotAllowed, match="ingest"):
        tokens.caller(f"Bearer {OTHER}").require("read")


def test_admin_may_do_everything() -> None:
    caller = Tokens.load(environ={"POTOK_TOKENS": f"admin={SECRET}"}).caller(f"Bearer {SECRET}")
    caller.require("read")
    caller.require("write")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[token]]\nscopes = ['read']\ntoken = 'long-enough-to-be-one'",
        "[[token]]\nname = 'x'\nscopes = ['everything']\ntoken = 'long-enough-to-be-one'",
        "[[token]]\nname = 'x'\nscopes = []\ntoken = 'long-enough-to-be-one'",
        "[[token]]\nname = 'x'\nscopes = ['read']\ntoken = 'short'",
        "[[token]]\nname = 'x'\nscopes = ['read']\nsha256 = 'abc'",
        "token = 3",
        "[[token",
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(BadTokens) as caught:
        Tokens.load(path, environ={})
    assert caught.value.hint


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadTokens, match="nowhere"):
        Tokens.load(tmp_path / "nowhere.toml", environ={})


@pytest.mark.parametrize("text", ["secret-without-a-scope", f"god={SECRET}", "read=short"])
def test_a_variable_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(BadTokens):
        Tokens.load(environ={"POTOK_TOKENS": text})
