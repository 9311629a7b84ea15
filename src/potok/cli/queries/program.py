"""Load the topology of a program from `FILE[:name]`, without running the file as a script."""

from __future__ import annotations

import importlib
import linecache
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import cloudpickle
import typer

from potok.cli.missing_package import missing_package
from potok.errors import Location, PotokError
from potok.machine import usable_path
from potok.program_loading import loading_program
from potok.sql.errors import closest

if TYPE_CHECKING:
    from potok.topology.graph import Topology

Program = Annotated[
    str,
    typer.Argument(metavar="FILE[:NAME]", help="A Python file or module, and the builder in it if there are several."),
]

LOADED_AS = "__potok_program__"
"""`__name__` of a loaded program. It cannot be imported, so its functions are sent to workers by value."""

_OWN_PACKAGE = Path(__file__).parents[2]


class NoSuchProgram(PotokError):
    """The program is neither a file nor a module."""

    def __init__(self, source: str, hint: str = "") -> None:
        super().__init__(f'cannot find the program "{source}"', hint=hint or "name a Python file, for example shop.py")


class BrokenProgram(PotokError):
    """The program raised while it was loaded."""

    def __init__(self, source: str, error: BaseException, at: Location | None) -> None:
        line = linecache.getline(at.file, at.line).strip() if at else ""
        super().__init__(
            f'"{source}" cannot be loaded: {type(error).__name__}: {getattr(error, "msg", None) or error}',
            hint=f"the line is: {line}" if line else "",
            at=at,
        )


class NoTopology(PotokError):
    """The program does not have the requested topology."""


def load_topology(program: str) -> Topology:
    """Return the topology that `FILE[:name]` names.

    `FILE` is a path or the dotted name of a module. Without a name, the program must have one builder or topology; a
    name may also be that of a function without arguments that returns one.
    """
    return load_program(program)[1]


def load_program(program: str) -> tuple[Any, Topology]:
    """Return the object that `FILE[:name]` names, and its topology."""
    source, name = split(program)
    module = _load_file(source) if is_path(source) else _load_module(source)
    with _blamed_on_the_program(source, Path(module.__file__ or ".").parent):
        found = _named(module, source, name) if name else _only(module, source)
        return found, _built(found, program)


def load_functions(sources: Iterable[str]) -> None:
    """Load files or modules that define SQL functions."""
    for source in sources:
        if is_path(source):
            _load_file(source)
        else:
            _load_module(source)


def split(program: str) -> tuple[str, str]:
    """Split `shop.py:builder` into ("shop.py", "builder")."""
    source, colon, name = program.rpartition(":")
    return (source, name) if colon and name.replace(".", "").isidentifier() else (program, "")


def is_path(source: str) -> bool:
    return source.endswith(".py") or "/" in source or Path(source).exists()


def _load_file(source: str) -> ModuleType:
    path = usable_path(source, "the program")
    if not path.is_file():
        raise NoSuchProgram(source, "it is a directory; name a file in it" if path.is_dir() else _similar(path))
    module = ModuleType(LOADED_AS)
    module.__file__ = str(path)
    sys.modules[LOADED_AS] = module
    with _blamed_on_the_program(source, path.parent), _importing_from(path.parent), loading_program():
        # Compiled, not imported: cached bytecode may be stale within a second, and no cache file is left behind.
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def _similar(path: Path) -> str:
    names = [file.name for file in path.parent.glob("*.py")] if path.parent.is_dir() else []
    return closest(path.name, names)


def _load_module(source: str) -> ModuleType:
    with _blamed_on_the_program(source, Path.cwd()), _importing_from(Path.cwd()), loading_program():
        try:
            return importlib.import_module(source)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{source}.".startswith(f"{error.name}."):
                raise NoSuchProgram(source) from error
            raise


@contextmanager
def _importing_from(directory: Path) -> Iterator[None]:
    """Make modules next to the program importable, and send them to Spark's workers by value."""
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    yield
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and (name == LOADED_AS or _is_users(Path(file), directory)):
            cloudpickle.register_pickle_by_value(module)


def _is_users(file: Path, directory: Path) -> bool:
    """Return whether a file belongs to the program; installed packages in a `.venv` next to it do not."""
    installed = (_OWN_PACKAGE, Path(sys.prefix), Path(sys.base_prefix))
    return file.is_relative_to(directory) and not any(file.is_relative_to(source) for source in installed)


@contextmanager
def _blamed_on_the_program(source: str, directory: Path) -> Iterator[None]:
    try:
        yield
    except PotokError:
        raise
    except (Exception, SystemExit) as error:
        missing = missing_package(error) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            raise missing from error
        raise BrokenProgram(source, error, _location_of(error, directory)) from error


def _location_of(error: BaseException, directory: Path) -> Location | None:
    """Return the innermost line of the user's code that led to the error."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Location(error.filename, error.lineno)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame for frame in frames if _is_users(Path(frame.filename), directory) and frame.lineno]
    return Location(lines[-1].filename, lines[-1].lineno or 0) if lines else None


def _topologies(module: ModuleType) -> dict[str, Any]:
    """Return builders and topologies by name; a topology next to its builder counts once."""
    from potok.dsl.builder import StreamsBuilder
    from potok.faust.app import App
    from potok.topology.graph import Topology

    kinds = App | StreamsBuilder | Topology
    found = {name: value for name, value in vars(module).items() if isinstance(value, kinds)}
    builders = {value.name for value in found.values() if isinstance(value, App | StreamsBuilder)}
    unique: dict[int, str] = {}
    for name, value in found.items():
        if isinstance(value, App | StreamsBuilder) or value.name not in builders:
            unique.setdefault(id(value), name)
    return {name: found[name] for name in unique.values()}


def _only(module: ModuleType, source: str) -> Any:
    found = _topologies(module)
    if not found:
        raise NoTopology(
            f'there is no StreamsBuilder in "{source}"',
            hint=f"create one at the top of the file, or name a function that returns one: {source}:build",
        )
    if len(found) > 1:
        raise NoTopology(
            f'there are several topologies in "{source}"',
            hint=f"name one: {' or '.join(f'{source}:{name}' for name in found)}",
        )
    return next(iter(found.values()))


def _named(module: ModuleType, source: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = ", ".join(f"{source}:{known}" for known in _topologies(module))
            raise NoTopology(f'there is no "{name}" in "{source}"', hint=f"there is {known}" if known else "")
        found = getattr(found, part)
    return found() if callable(found) and not hasattr(found, "build") else found


def _built(found: Any, program: str) -> Topology:
    from potok.topology.graph import Topology

    build = getattr(found, "build", None)
    topology = found if build is None or isinstance(found, type) else build()
    if not isinstance(topology, Topology):
        raise NoTopology(
            f'"{program}" is a {type(found).__name__}, not a topology',
            hint="name a StreamsBuilder, or a function that returns one",
        )
    return topology
