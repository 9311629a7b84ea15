from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from potok.cli.main import app
from potok.server.access import tokens as tokens_module
from potok.server.access.callers import Caller
from potok.server.access.token_file import TokenFile
from potok.server.access.tokens import Tokens
from potok.server.errors import BadTokens, NotAllowed, NoToken

runner = CliRunner()


def bearer(token: str) -> str:
    return f"Bearer {token}"


def test_commands_keep_digests_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    added = runner.invoke(app, ["tokens", "add", "ingest", "--scope", "write:orders-", "--file", str(path), "--json"])
    token = json.loads(added.stdout)["token"]
    again = ["tokens", "add", "dash", "--scope", "read", "--per-second", "5", "--file", str(path), "--json"]
    assert runner.invoke(app, again).exit_code == 0

    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    listed = json.loads(runner.invoke(app, ["tokens", "list", "--file", str(path), "--json"]).stdout)
    assert listed == [
        {"name": "ingest", "scopes": ["write:orders-"], "per_second": None},
        {"name": "dash", "scopes": ["read"], "per_second": 5.0},
    ]
    caller = Tokens.load(path, environ={}).caller(bearer(token))
    assert (caller.name, caller.may("write", "orders-eu"), caller.may("write", "payments")) == ("ingest", True, False)


def test_removing_a_token_leaves_the_rest_of_the_file(tmp_path: Path) -> None:
    path, digest = tmp_path / "tokens.toml", "ab" * 32
    path.write_text(f'# ours\n[[token]]\nname = "a"\nscopes = ["read"]\nsha256 = "{digest}"\n\n# the other\n')
    kept = TokenFile(path).add("b", ["write"])
    TokenFile(path).remove("a")
    assert path.read_text().startswith("# ours\n[[token]]")
    assert Tokens.load(path, environ={}).caller(bearer(kept)).name == "b"
    with pytest.raises(BadTokens, match='no token "a"'):
        TokenFile(path).remove("a")


@pytest.mark.parametrize(
    ("name", "scopes"), [('x"]', ["read"]), ("", ["read"]), ("ok", ["all"]), ("ok", ['read:"\n']), ("ok", ["read:"])]
)
def test_what_cannot_be_a_token_is_not_added(tmp_path: Path, name: str, scopes: list[str]) -> None:
    with pytest.raises(BadTokens):
        TokenFile(tmp_path / "tokens.toml").add(name, scopes)
    assert not (tmp_path / "tokens.toml").exists()


def test_a_name_is_given_once(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.toml")
    file.add("a", ["read"])
    with pytest.raises(BadTokens, match='there is a token "a"'):
        file.add("a", ["admin"])


def test_a_removed_token_is_rejected_while_the_server_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "CHECK_S", -1.0)
    file = TokenFile(tmp_path / "tokens.toml")
    token = file.add("a", ["read"])
    tokens = Tokens.load(file.path, environ={})
    assert tokens.caller(bearer(token)).name == "a"
    later = file.add("b", ["read"])
    assert tokens.caller(bearer(later)).name == "b"
    file.remove("a")
    with pytest.raises(NoToken):
        tokens.caller(bearer(token))
    file.remove("b")
    with pytest.raises(NoToken):  # without tokens nobody may call, instead of everybody
        tokens.caller(bearer(later))
    assert tokens


def test_a_broken_file_leaves_the_tokens_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tokens_module, "CHECK_S", -1.0)
    file = TokenFile(tmp_path / "tokens.toml")
    token = file.add("a", ["read"])
    tokens = Tokens.load(file.path, environ={})
    file.path.write_text("[[token")
    assert tokens.caller(bearer(token)).name == "a"
    assert "stay as they were" in caplog.text
    os.unlink(file.path)
    assert tokens.caller(bearer(token)).name == "a"


def test_tokens_as_text_work_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text('[[token]]\nname = "old"\nscopes = ["read"]\ntoken = "as-text-in-this-file"\n')
    assert Tokens.load(path, environ={}).caller(bearer("as-text-in-this-file")).name == "old"
    assert 'token "old"' in caplog.text and "as-text-in-this-file" not in caplog.text


@pytest.mark.parametrize(
    ("scopes", "scope", "names", "allowed"),
    [
        (["read"], "read", [], True),
        (["read"], "read", ["anything"], True),
        (["read"], "write", ["anything"], False),
        (["read:shop"], "read", [], False),
        (["read:shop"], "read", ["SHOP_TOTALS", "shop-orders"], True),
        (["read:shop"], "read", ["shop-orders", "payments"], False),
        (["read:shop"], "read", ["my-shop"], False),
        (["read:a", "read:b"], "read", ["a1", "b1"], True),
        (["admin:a", "read:b"], "read", ["a1", "b1"], True),
        (["admin:a", "read:b"], "write", ["b1"], False),
        (["admin"], "write", [], True),
        (["read", "read:a"], "read", [], True),
        (["read:a"], "read", [""], False),
    ],
)
def test_a_scope_holds_for_names_that_begin_so(scopes: list[str], scope: str, names: list[str], allowed: bool) -> None:
    caller = Caller("c", frozenset(scopes))
    assert caller.may(scope, *names) == allowed
    if not allowed:
        with pytest.raises(NotAllowed):
            caller.require(scope, *names)
