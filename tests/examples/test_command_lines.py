"""The command lines and settings of the README and of `docs/` are accepted by the command and by `Settings`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from potok.cli.main import app
from potok.settings import Settings

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""Typer brings its own Click, and exports only subclasses of this."""

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
OPERATORS = ("|", ">", ">>", "<", "&", "&&", "||")
TOML = re.compile(r"^```toml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each `potok` in the shell blocks of a page. A quoted argument may span lines."""
    for block in SHELL.findall(text):
        pending = ""
        for line in block.splitlines(keepends=True):
            pending += line.removeprefix("$ ")
            try:
                words = shlex.split(pending, comments=True)
            except ValueError:
                continue
            pending = ""
            if "potok" in words and words.index("potok") in (0, words.index("|") + 1 if "|" in words else 0):
                given = words[words.index("potok") + 1 :]
                yield list(takewhile(lambda word: word not in OPERATORS, given))
        assert not pending, "a quote is not closed"


def blocks(pattern: re.Pattern[str]) -> list[Any]:
    return [
        pytest.param(block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(pattern.findall(page.read_text()), 1)
    ]


def check(arguments: list[str]) -> None:
    """Parse a command line without running it. Raises `USAGE_ERROR`."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("potok", list(arguments))
    while isinstance(command, TyperGroup):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(arguments, id=f"{page.stem}: {shlex.join(arguments)[:60]}")
        for page in PAGES
        for arguments in command_lines(page.read_text())
    ],
)
def test_a_command_line_of_a_page_is_understood(arguments: list[str]) -> None:
    check(arguments)


@pytest.mark.parametrize("arguments", [["topic", "list"], ["topics", "lst"], ["run"], ["consume", "orders", "--folow"]])
def test_a_wrong_command_line_would_be_found(arguments: list[str]) -> None:
    with pytest.raises(USAGE_ERROR):
        check(arguments)


OTHER_FILES = ("[[token]]", "# gateway.toml", "# cdc.toml")


def is_of_settings(block: Any) -> bool:
    return not any(mark in block.values[0] for mark in OTHER_FILES)


@pytest.mark.parametrize("block", list(filter(is_of_settings, blocks(TOML))))
def test_the_settings_of_a_page_are_accepted(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "potok.toml").write_text(block)
    monkeypatch.chdir(tmp_path)
    Settings.load()
