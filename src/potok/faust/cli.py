"""Commands of a program with options, as in `faust.cli`: `from potok.faust.cli import option, argument`.

They are those of click.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, ClassVar

import click

from potok.errors import Location, TopologyError
from potok.faust.unsupported import REFUSED, CannotImport

if TYPE_CHECKING:
    from potok.faust.app import App

__all__ = ["AppCommand", "Command", "argument", "option"]

argument = click.argument

BUILT_IN = frozenset({"agents", "explain", "models", "reset", "send", "tables", "worker"})
"""Commands that every program has."""


class NameTaken(TopologyError):
    """A command with the name of another one."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'there is a command "{name}" already', hint='choose another: name="..."', at=Location.of_caller()
        )


def option(*names: str, show_default: bool = True, **attributes: Any) -> Callable[[Any], Any]:
    """Declare an option of a command, like `click.option`; its help shows the default.

    >>> @app.command(option("--upper/--no-upper", default=False), argument("name"))
    ... async def greet(self, upper, name): ...
    """
    return click.option(*names, show_default=show_default, **attributes)


class AppCommand:
    """The `self` of a command. A subclass with `run` is a command of every app of the program.

    >>> class Greet(AppCommand):
    ...     options = [option("--upper/--no-upper", default=False), argument("name")]
    ...     async def run(self, upper, name): self.say(name.upper() if upper else name)
    """

    UsageError: ClassVar = click.UsageError
    abstract: ClassVar[bool] = True
    options: ClassVar[Sequence[Callable[[Any], Any]]] = ()
    defined: ClassVar[dict[str, type[AppCommand]]] = {}

    debug = quiet = False

    def __init__(self, app: App, *, as_json: bool = False, stdout: IO[str] | None = None) -> None:
        self.app, self.json, self.stdout = app, as_json, stdout

    def __init_subclass__(cls, **_: Any) -> None:
        if "abstract" not in vars(cls):
            cls.abstract = False
        if not cls.abstract:
            name = cls.__name__.lower().replace("_", "-")
            if name in BUILT_IN:
                raise NameTaken(name)
            AppCommand.defined[name] = cls

    async def run(self, *args: Any, **options: Any) -> Any:
        """Run the command, with its options by name."""

    async def on_stop(self) -> None:
        """Called after `run`, also if it raised."""

    def say(self, message: Any, file: IO[str] | None = None, **more: Any) -> None:
        click.echo(message, file=file or self.stdout, **more)

    def carp(self, message: Any, **more: Any) -> None:
        """Print a debug message, if `self.debug` is true."""
        if self.debug:
            self.say(f"#-- {message}", **more)

    def dumps(self, data: Any) -> str:
        return json.dumps(data)

    def tabulate(self, data: Sequence[Sequence[Any]], headers: Sequence[str] | None = None, **_: Any) -> str:
        """Return rows as aligned text, or as JSON with --json."""
        if self.json:
            return self.dumps([dict(zip(headers, row, strict=True)) for row in data] if headers else list(data))
        rows = [[str(cell) for cell in row] for row in ([headers, *data] if headers else data)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(line.rstrip() for line in lines)


Command = AppCommand


class OfFunction:
    """A command from a function. Without options, its parameters are the arguments after its name."""

    def __init__(
        self, function: Any, options: Sequence[Any], kind: type[AppCommand], attributes: dict[str, Any]
    ) -> None:
        self._function, self._options, self._kind, self._attributes = function, options, kind, attributes

    def of(self, app: App, name: str) -> click.Command:
        made = _made(name, self._function, self._options)
        parameters = list(inspect.signature(self._function).parameters.values())
        known = {parameter.name for parameter in made.params}
        first = parameters[0].name if parameters else ""
        takes_self = first == "self" or bool(first and self._options and first not in known)
        listed = [] if self._options else parameters[takes_self:]
        asked = [parameter for parameter in listed if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        made.params += [_parameter(parameter) for parameter in asked]

        def call(**given: Any) -> None:
            command = self._kind(app, as_json=_as_json())
            vars(command).update(self._attributes)
            listed, named = _filled(asked, given)
            _carry_out(command, lambda: self._function(*([command] if takes_self else []), *listed, **named))

        made.callback = call
        return made


def commands_of(app: App) -> dict[str, click.Command]:
    """Return all commands that a program defines."""
    classes = {name: _of_class(app, name, kind) for name, kind in AppCommand.defined.items()}
    return classes | {name: command.of(app, name) for name, command in app.commands.items()}


def _of_class(app: App, name: str, kind: type[AppCommand]) -> click.Command:
    made = _made(name, kind, kind.options)

    def call(**given: Any) -> None:
        command = kind(app, as_json=_as_json())
        _carry_out(command, lambda: command.run(**given))

    made.callback = call
    return made


def carry_out(command: click.Command, arguments: Sequence[str], *, as_json: bool) -> None:
    """Run a command line, and exit on a usage error."""
    if all("--json" not in parameter.opts for parameter in command.params):
        result = click.Option(["--json"], is_flag=True, expose_value=False, callback=_note_json, help="print JSON")
        command.params.append(result)
    try:
        ended = command.main(
            list(arguments), prog_name=f"{sys.argv[0]} {command.name}", standalone_mode=False, obj={"json": as_json}
        )
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit("aborted")
    if ended:
        sys.exit(ended)


def _made(name: str, described: Any, options: Sequence[Callable[[Any], Any]]) -> click.Command:
    made = click.Command(name, help=described.__doc__)
    for decorate in options:
        decorate(made)
    return made


def _parameter(parameter: inspect.Parameter) -> click.Parameter:
    has_default = parameter.default is not inspect.Parameter.empty
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        return click.Option([f"--{parameter.name.replace('_', '-')}", parameter.name], required=not has_default)
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return click.Argument([parameter.name], nargs=-1)
    return click.Argument([parameter.name], required=not has_default)


def _filled(asked: Sequence[inspect.Parameter], given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a function, positional and by name."""
    if not asked:
        return [], given
    listed, named = list[Any](), dict[str, Any]()
    for parameter in asked:
        # Click lowercases the names of arguments.
        value = given.get(parameter.name, given.get(parameter.name.lower()))
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            listed += value or ()
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = parameter.default if value is None else value
        else:
            listed.append(parameter.default if value is None else value)
    return listed, named


def _note_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.obj["json"] = True


def _as_json() -> bool:
    return bool(click.get_current_context().obj["json"])


def _carry_out(command: AppCommand, work: Callable[[], Any]) -> None:
    result = work()
    if inspect.isawaitable(result):
        asyncio.run(_until_stopped(command, result))


async def _until_stopped(command: AppCommand, work: Any) -> None:
    try:
        await work
    finally:
        await command.on_stop()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in REFUSED["cli"]:
            raise CannotImport(f"cli.{name}", REFUSED["cli"][name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
