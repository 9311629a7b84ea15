"""Captures in a TOML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.sources.cdc.config import BadCaptureFile, load_captures

GOOD = 'url = "postgresql://reader@db/shop"\ntables = ["users", "sales.orders"]\n'


def load(directory: Path, text: str) -> None:
    path = directory / "cdc.toml"
    path.write_text(text)
    load_captures(path)


def test_a_file_names_the_log_and_the_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_URL", "postgresql://reader:secret@db/shop")
    path = tmp_path / "cdc.toml"
    path.write_text('broker = "file:./data"\n[shop]\nurl = "env:SHOP_URL"\ntables = ["users"]\nheartbeat = "1 s"\n')
    found = load_captures(path)
    (capture,) = found.captures
    assert (found.broker, capture.name, capture.topic("users")) == ("file:./data", "shop", "shop.public.users")
    assert (capture.slot, capture.publication, capture.heartbeat_s) == ("potok_shop", "potok_shop", 1.0)
    assert "secret" not in repr(capture)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no capture"),
        ("[shop", "not TOML"),
        ("shop = 1", "is not a table of options"),
        ('[shop]\ntables = ["users"]', 'needs the option "url"'),
        ('[shop]\nurl = "postgresql://db/shop"', 'needs the option "tables"'),
        (f"[shop]\n{GOOD}chunk_row = 5", 'no option "chunk_row"'),
        (f'[shop]\n{GOOD}chunk_rows = "5"', "does not have the right type"),
        (f"[shop]\n{GOOD}chunk_rows = 0", "chunk_rows = 0 is too small"),
        (f'[shop]\n{GOOD}snapshot = "always"', "there is no snapshot 'always'"),
        (f"[Shop]\n{GOOD}", "cannot be the name of a capture"),
        ('[shop]\nurl = "env:NO_SUCH_URL"\ntables = ["users"]', "environment variable NO_SUCH_URL is not set"),
        ('[shop]\nurl = "oracle://db/shop"\ntables = ["users"]', "does not name a database that can be captured"),
        ('[shop]\nurl = "postgresql://db"\ntables = ["users"]', "does not name a database"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadCaptureFile, match=message):
        load(tmp_path, text)


def test_a_misspelt_option_has_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(BadCaptureFile) as found:
        load(tmp_path, f"[shop]\n{GOOD}chunk_row = 5")
    assert 'did you mean "chunk_rows"?' in found.value.hint
