"""Whoever only looks makes no log."""

from __future__ import annotations

from pathlib import Path

import pytest

import potok as public
from cli.shop import write_program
from potok.log.open import NoLogThere, log_exists, open_broker


@pytest.mark.parametrize(
    "words",
    [
        ("tables", "list"),
        ("tables", "get", "counts", "anna"),
        ("tables", "scan", "counts"),
        ("topics", "list"),
        ("topics", "describe", "orders"),
        ("topics", "delete", "orders", "--yes"),
        ("consume", "orders"),
        ("dead-letters", "list"),
        ("dead-letters", "show", "0"),
        ("produce", "orders", "--no-create"),
    ],
    ids=" ".join,
)
def test_a_command_that_looks_leaves_an_empty_folder_empty_and_says_so(potok, tmp_path: Path, words) -> None:
    result = potok(*words)
    assert result.code == 1
    assert f"no log in {tmp_path / 'data'}" in result.err
    assert "--broker" in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["describe", "explain", "diff"])
def test_a_program_can_be_looked_at_without_a_log(potok, tmp_path: Path, command: str) -> None:
    result = potok(command, write_program(tmp_path / "program"))
    assert result.code == 0
    assert not (tmp_path / "data").exists()


def test_an_unknown_argument_creates_no_log(potok, tmp_path: Path) -> None:
    result = potok("describe", "nosuchquery")
    assert (result.code, list(tmp_path.iterdir())) == (1, [])
    assert 'there is no query, file or module "nosuchquery"' in result.err


def test_tables_cannot_be_opened_where_there_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(NoLogThere):
        public.open_tables(tmp_path / "data", "shop")
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_found_under_every_spelling_of_its_url(tmp_path: Path) -> None:
    spellings = (tmp_path, str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}")
    assert not any(map(log_exists, spellings))
    open_broker(tmp_path).close()
    assert all(map(log_exists, spellings))
    assert log_exists("kafka://localhost:9092")
