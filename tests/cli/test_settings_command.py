from __future__ import annotations

from pathlib import Path

import pytest


def rendered(potok, *words: str) -> dict[str, tuple[str, str]]:
    return {row["name"]: (row["value"], row["origin"]) for row in potok(*words, "settings", "--json").objects}


def test_every_setting_is_shown_with_its_value_and_origin(
    potok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "potok.toml").write_text('shards = 3\nidle_after = "90 s"\nmaster = "local[1]"')
    monkeypatch.setenv("POTOK_MASTER", "local[2]")
    rows = rendered(potok, "--broker", "file:elsewhere")
    assert rows["broker"] == ("file:elsewhere", "argument")
    assert rows["master"] == ("local[2]", "POTOK_MASTER")
    assert rows["shards"] == ("3", "potok.toml")
    assert rows["idle_after"] == ("90s", "potok.toml")
    assert rows["retry_for"] == ("5m", "default")


def test_secrets_are_not_shown(potok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "potok.toml").write_text('state = "redis://:hunter22@localhost:6379/0"')
    monkeypatch.setenv("POTOK_KAFKA_SASL_PASSWORD", "hunter33")
    rows = rendered(potok)
    assert rows["state"] == ("redis://localhost:6379/0", "potok.toml")
    assert rows["kafka.sasl.password"] == ("***", "POTOK_KAFKA_SASL_PASSWORD")
    assert "hunter" not in potok("settings").out


def test_the_file_in_use_is_named(potok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "potok.toml").write_text("shards = 3")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    reported = potok("settings")
    assert f"file: {tmp_path / 'potok.toml'}" in reported.err
    assert rendered(potok)["shards"] == ("3", str(tmp_path / "potok.toml"))


def test_a_missing_file_is_said_to_be_missing(potok) -> None:
    assert "file: none" in potok("settings").err
