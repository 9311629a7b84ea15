"""The commands that messages name can be typed as they are: each is understood by the command line."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from examples.test_command_lines import ROOT, USAGE_ERROR, check
from potok.cli.main import app

NAMED = re.compile(r"(?<![\w/.`-])potok ((?:[^;,:()`|\n]|:(?=\S))*)")
CALLED = re.compile(r"\bpotok (?!import\b)")
PROSE = re.compile(
    r"a|and|be|ends|first|for|has|is|it|lists|made|makes?|or|removes|runs|serves|shows|so|starts|stops|takes|that|the|"
    r"then|there|they|to|waits|which|works"
)
"""Words that continue the sentence after a command."""

GROUP: object = typer.main.get_command(app)


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module but for docstrings; what an f-string fills in reads `1`."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant | ast.Expr)]
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | documents:
            yield node.value


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each command that a text names, up to the word that is not a part of it."""
    assert isinstance(GROUP, TyperGroup)
    for found in NAMED.findall(text):
        words = shlex.split(found.replace("'", "").replace('"', "").rstrip(". "))
        if not words or words[0] not in GROUP.commands:
            continue
        end = next((at for at, word in enumerate(words) if PROSE.fullmatch(word)), len(words))
        yield [word for word in words[:end] if word != "..."]


def named() -> dict[str, list[str]]:
    """Each command that a module of the package names, by its text and the module."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        source = path.read_text()
        # Parsing all modules takes seconds, in each worker.
        for text in texts(ast.parse(source)) if CALLED.search(source) else ():
            for arguments in commands(text):
                found[f"{path.stem}: {shlex.join(arguments)}"] = arguments
    return found


NAMES = named()


def test_commands_are_found_in_messages() -> None:
    assert ["topics", "create", "1", "--partitions", "4"] in NAMES.values()
    assert len(NAMES) > 50
    assert list(commands("nothing ran: potok tables list shows them; or potok run PROGRAM --shadow")) == [
        ["tables", "list"],
        ["run", "PROGRAM", "--shadow"],
    ]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_command_that_a_message_names_is_understood(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        check(NAMES[name])
    except USAGE_ERROR as error:
        pytest.fail(f"potok {shlex.join(NAMES[name])}: {error}", pytrace=False)
