from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from cli.prompt.recorded import Recorded
from potok.cli.prompt.display import Drawn, Objects
from potok.cli.prompt.input.keyboard import Keyboard, SqlLexer, coloured, history_file, is_answerable
from potok.cli.prompt.script import Script

CTRL_C, CTRL_D, UP, LEFT = "\x03", "\x04", "\x1b[A", "\x1b[D"


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


def typed(keys: PipeInput, text: str, history: InMemoryHistory | None = None) -> tuple[Recorded, Script]:
    """What was asked for by somebody who typed this."""
    target = Recorded()
    script = Script(target, Drawn(), settles=False)
    keys.send_text(text)
    Keyboard(target, script, history=history, input_=keys, output=DummyOutput()).run()
    return target, script


def test_a_statement_ends_with_enter_behind_its_semicolon(keys: PipeInput) -> None:
    target, _ = typed(keys, "DROP STREAM\ra;\rexit\r")
    assert target.asked == ["DROP STREAM\na;"]


def test_a_semicolon_in_quotes_does_not_end_it(keys: PipeInput) -> None:
    target, _ = typed(keys, "DEFINE x = 'a;\rb';\rexit\r")
    assert target.asked == ["DEFINE x = 'a;\nb';"]


def test_enter_in_the_middle_starts_a_line(keys: PipeInput) -> None:
    target, _ = typed(keys, "DROP STREAM a;" + LEFT * 2 + "\r" + "\x05" + "\rexit\r")
    assert target.asked == ["DROP STREAM \na;"]


def test_ctrl_c_drops_what_was_typed(keys: PipeInput) -> None:
    target, _ = typed(keys, f"DROP STREAM a{CTRL_C}DROP STREAM b;\r{CTRL_D}")
    assert target.asked == ["DROP STREAM b;"]


def test_an_error_is_shown_and_the_prompt_stays(keys: PipeInput, capsys: pytest.CaptureFixture[str]) -> None:
    target, _ = typed(keys, "DORP x;\rDROP STREAM nothing;\rDROP STREAM a;\rquit\r")
    assert target.asked == ["DROP STREAM nothing;", "DROP STREAM a;"]
    reported = capsys.readouterr().err
    assert "error: no statement begins with DORP" in reported
    assert "error: there is no NOTHING" in reported


def test_what_was_typed_before_comes_back(keys: PipeInput) -> None:
    history = InMemoryHistory(["DROP STREAM before;"])
    target, _ = typed(keys, f"{UP}\rexit\r", history)
    assert target.asked == ["DROP STREAM before;"]


def test_help_shows_the_syntax_of_a_statement(keys: PipeInput, capsys: pytest.CaptureFixture[str]) -> None:
    typed(keys, "help drop\rhelp\rexit\r")
    reported = capsys.readouterr().out
    assert reported.startswith("DROP STREAM|TABLE|TYPE [IF EXISTS] name [DELETE TOPIC];\n")
    assert "output json|table" in reported


def test_output_can_be_switched(keys: PipeInput) -> None:
    _, script = typed(keys, "output json\rexit\r")
    assert isinstance(script.display, Objects)


@pytest.mark.parametrize(
    ("text", "answerable"),
    [
        ("", True),
        ("  \n ", True),
        ("exit", True),
        ("HELP select", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT 1; -- done", True),
        ("SELECT 1; SELECT", False),
    ],
)
def test_what_enter_ends(text: str, answerable: bool) -> None:
    assert is_answerable(text) is answerable


def test_the_history_file_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert isinstance(history_file(), FileHistory)
    (path,) = (tmp_path / "potok").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_file_for_it_there_is_a_history_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert isinstance(history_file(), InMemoryHistory)


def styles(text: str) -> dict[str, str]:
    return {part[1]: part[0].removeprefix("class:sql.") for part in coloured(text) if part[1].strip()}


def test_each_kind_of_token_has_its_colour() -> None:
    found = styles("select SUM(amount), 'x', 1.5, ${v} FROM orders -- all\n")
    assert found["select"] == found["FROM"] == "keyword"
    assert found["SUM"] == "function"
    assert (found["amount"], found["orders"]) == ("", "")
    assert (found["'x'"], found["1.5"], found["${v}"], found["-- all"]) == ("string", "number", "variable", "comment")
    assert styles("CREATE STREAM s (a VARCHAR)")["VARCHAR"] == "type"


@pytest.mark.parametrize("text", ["", "SELECT 'not\nclosed", "/* a\nb */ x;\n\n", "a\n"])
def test_every_line_is_shown_as_it_is(text: str) -> None:
    line = SqlLexer().lex_document(Document(text))
    rendered = ["".join(part[1] for part in line(number)) for number in range(len(text.split("\n")))]
    assert rendered == text.split("\n")
