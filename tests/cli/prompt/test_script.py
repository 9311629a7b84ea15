from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.prompt.recorded import Recorded
from potok.cli.prompt.script import Script, check_ends
from potok.sql.errors import Refused, SqlError, SqlSyntaxError, UnknownName
from potok.sql.types import BIGINT
from potok.statements.results import Done, Push, ResultColumn, Row


class Endless(Push):
    """One row each time, and Ctrl-C with the third."""

    columns = (ResultColumn("N", BIGINT),)
    query_id = "q"

    def __init__(self) -> None:
        self.given, self.closed = 0, False

    def next(self, timeout_s: float | None = None) -> Sequence[Row] | None:
        self.given += 1
        if self.given == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return [(self.given,)]

    def close(self) -> None:
        self.closed = True


class Shown:
    def __init__(self) -> None:
        self.reported: list[Any] = []

    def done(self, text: str, result: Done) -> None:
        self.reported.append(result.message)

    def rows(self, text: str, result: Any) -> None: ...

    def push(self, text: str, result: Push, *, as_lines: bool) -> Shown:
        return self

    def add(self, rows: Sequence[Row]) -> None:
        self.reported += rows

    def end(self, *, interrupted: bool) -> None:
        self.reported.append("interrupted" if interrupted else "complete")


def test_statements_are_carried_out_in_their_order() -> None:
    target = Recorded()
    Script(target, Shown(), settles=False).run("DROP STREAM a; DROP STREAM b;")
    assert target.asked == ["DROP STREAM a;", "DROP STREAM b;"]


def test_nothing_is_carried_out_of_a_text_that_cannot_be_parsed() -> None:
    target = Recorded()
    with pytest.raises(SqlSyntaxError):
        Script(target, Shown(), settles=False).run("DROP STREAM a; DORP STREAM b;")
    assert target.asked == []


def test_an_error_names_its_line_in_the_whole_text() -> None:
    with pytest.raises(UnknownName) as caught:
        Script(Recorded(), Shown(), settles=False).run("DROP STREAM a;\n\nDROP STREAM nothing;\n", "x.sql")
    assert caught.value.line_text == "DROP STREAM nothing;"
    assert str(caught.value.at) == "x.sql:3"


def test_a_script_runs_another_and_an_error_there_names_that_one(tmp_path: Path) -> None:
    inner = tmp_path / "inner.sql"
    inner.write_text("DROP STREAM b;\nDROP STREAM nothing;")
    target = Recorded()
    with pytest.raises(SqlError) as caught:
        Script(target, Shown(), settles=False).run(f"DROP STREAM a; RUN SCRIPT '{inner}';", "outer.sql")
    assert target.asked == ["DROP STREAM a;", "DROP STREAM b;", "DROP STREAM nothing;"]
    assert str(caught.value.at) == f"{inner}:2"


def test_a_script_that_runs_itself_ends(tmp_path: Path) -> None:
    path = tmp_path / "again.sql"
    path.write_text(f"RUN SCRIPT '{path}';")
    with pytest.raises(Refused, match="nested more than"):
        Script(Recorded(), Shown(), settles=False).run(path.read_text())


def test_a_script_that_is_not_there_is_an_error_with_a_position() -> None:
    with pytest.raises(Refused, match="cannot read") as caught:
        Script(Recorded(), Shown(), settles=False).run("RUN SCRIPT 'nowhere.sql';")
    assert caught.value.location is not None


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A shell starts background processes with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_ctrl_c_ends_a_push_query_and_the_prompt_continues() -> None:
    push, rendered = Endless(), Shown()
    Script(Recorded(push), rendered, settles=False).run("SELECT n FROM t EMIT CHANGES;")
    assert rendered.reported == [(1,), (2,), (3,), "interrupted"]
    assert push.closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("_interruptible")
def test_ctrl_c_ends_a_script_with_its_push_query() -> None:
    push, target = Endless(), Recorded(Endless())
    target._push = push
    with pytest.raises(KeyboardInterrupt):
        Script(target, Shown(), settles=True).run("SELECT n FROM t EMIT CHANGES; DROP STREAM a;")
    assert push.closed
    assert target.asked == ["SELECT n FROM t EMIT CHANGES;"]


def test_a_script_waits_for_its_queries_before_it_reads() -> None:
    target = Recorded()
    Script(target, Shown(), settles=True).run("DROP STREAM a; SELECT * FROM t;")
    assert target.asked == ["DROP STREAM a;", "settle", "SELECT * FROM t;"]


def test_variables_hold_for_the_statements_and_scripts_after_them(tmp_path: Path) -> None:
    inner = tmp_path / "inner.sql"
    inner.write_text("DROP STREAM ${s};")
    target = Recorded()
    script = Script(target, Shown(), settles=False)
    script.run(f"DEFINE s = 'orders'; RUN SCRIPT '{inner}';")
    script.run("DROP TABLE ${s};")
    assert target.asked[1:] == ["DROP STREAM orders;", "DROP TABLE orders;"]


@pytest.mark.parametrize("text", ["SELECT * FROM t EMIT CHANGES;", "DROP STREAM a; PRINT x;"])
def test_a_statement_that_keeps_running_is_found_before_anything_happens(text: str) -> None:
    with pytest.raises(Refused, match="would not be displayed"):
        check_ends(text, "init.sql")
    check_ends("SELECT * FROM t; DROP STREAM a;", "init.sql")


def test_new_dead_letters_are_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    target = Recorded()
    target.open_dead_letters = {"CTAS_OLD_1": 7}
    script = Script(target, Shown(), settles=True)
    script.run("DROP STREAM a;")
    target.open_dead_letters = {"CTAS_OLD_1": 8, "CTAS_NEW_2": 3}
    script.settle()
    assert capsys.readouterr().err.splitlines() == [
        "warning: 1 dead letter of query CTAS_OLD_1: potok dead-letters list --query CTAS_OLD_1",
        "warning: 3 dead letters of query CTAS_NEW_2: potok dead-letters list --query CTAS_NEW_2",
    ]
    script.settle()
    assert capsys.readouterr().err == ""


def test_a_push_query_reports_the_rows_it_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    class Short(Endless):
        left_out = 2

        def next(self, timeout_s: float | None = None) -> Sequence[Row] | None:
            return None

    Script(Recorded(Short()), Shown(), settles=True).run("SELECT * FROM a EMIT CHANGES;")
    assert "warning: 2 records could not be processed" in capsys.readouterr().err
