"""Commands that a program defines, with options and arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest

import potok.faust as faust
from potok.faust.cli import AppCommand, NameTaken, argument, option


@pytest.fixture
def app() -> faust.App:
    return faust.App("shop")


def test_a_command_has_options_and_arguments_by_name(app: faust.App, capsys: pytest.CaptureFixture[str]) -> None:
    @app.command(
        option("--upper/--no-upper", default=False), option("-n", "--times", type=int, default=1), argument("name")
    )
    async def greet(self: Any, upper: bool, times: int, name: str) -> None:
        """Greet somebody."""
        self.say(" ".join([name.upper() if upper else name] * times))
        assert self.app is app

    app.main(["greet", "--upper", "-n", "2", "ann"])
    app.main(["greet", "bob"])
    assert capsys.readouterr().out == "ANN ANN\nbob\n"


def test_a_wrong_option_ends_the_process_and_says_why(app: faust.App, capsys: pytest.CaptureFixture[str]) -> None:
    @app.command(option("--times", type=int, default=1))
    async def greet(times: int) -> None:
        raise AssertionError(times)

    with pytest.raises(SystemExit) as ended:
        app.main(["greet", "--times", "many"])
    assert ended.value.code == 2
    assert "'many' is not a valid integer" in capsys.readouterr().err


def test_help_shows_the_options_of_a_command_and_the_list_of_all_shows_the_command(
    app: faust.App, capsys: pytest.CaptureFixture[str]
) -> None:
    @app.command(option("--times", default=3, help="How often."))
    async def greet_all(self: Any, times: int) -> None:
        """Greet everybody."""

    app.main(["greet-all", "--help"])
    assert "How often.  [default: 3]" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        app.main(["--help"])
    reported = capsys.readouterr().out
    assert "greet-all" in reported
    assert "Greet everybody." in reported


def test_without_options_the_parameters_are_the_arguments(app: faust.App, capsys: pytest.CaptureFixture[str]) -> None:
    @app.command()
    async def greet(userName: str, greeting: str = "hello", *others: str, loud: str = "no") -> None:
        print(greeting, userName, *others, loud)

    @app.command(name="nothing")
    def does_nothing(**options: str) -> None:
        print("nothing", *options)

    app.main(["greet", "ann"])
    app.main(["greet", "--loud", "yes", "ann", "hi", "bob", "cid"])
    app.main(["nothing"])
    assert capsys.readouterr().out == "hello ann no\nhi ann bob cid yes\nnothing\n"
    with pytest.raises(SystemExit) as ended:
        app.main(["greet"])
    assert ended.value.code == 2


def test_a_class_is_a_command_too_and_knows_whether_json_is_wanted(
    app: faust.App, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: list[str] = []

    class Spoken(AppCommand):
        abstract = True

        async def on_stop(self) -> None:
            stopped.append("stopped")

    class List_Users(Spoken):
        """List users."""

        options = (argument("names", nargs=-1),)

        async def run(self, names: tuple[str, ...]) -> None:
            self.say(self.tabulate([(name, len(name)) for name in names], headers=["name", "letters"]))

    try:
        app.main(["list-users", "ann", "robert"])
        assert capsys.readouterr().out == "name    letters\nann     3\nrobert  6\n"
        for line in (["--json", "list-users", "ann"], ["list-users", "--json", "ann"]):
            app.main(line)
            assert json.loads(capsys.readouterr().out) == [{"name": "ann", "letters": 3}]
        assert stopped == ["stopped"] * 3
        assert "spoken" not in AppCommand.defined
    finally:
        del AppCommand.defined["list-users"]


def test_a_name_that_is_taken_is_refused(app: faust.App) -> None:
    with pytest.raises(NameTaken, match='there is a command "worker" already'):
        app.command(name="worker")(lambda: None)
    app.command(name="mine")(lambda: None)
    with pytest.raises(NameTaken):
        app.command(name="mine")(lambda: None)


def test_an_error_in_a_custom_command_is_reported(app: faust.App, capsys: pytest.CaptureFixture[str]) -> None:
    @app.command(argument("name"))
    async def greet(self: Any, name: str) -> None:
        raise self.UsageError(f"nobody is called {name}")

    with pytest.raises(SystemExit):
        app.main(["greet", "ann"])
    assert "nobody is called ann" in capsys.readouterr().err


def test_unsupported_faust_names_are_refused_with_an_alternative() -> None:
    assert faust.cli.option is option
    with pytest.raises(ImportError, match="call_command"):
        faust.cli.call_command  # noqa: B018
