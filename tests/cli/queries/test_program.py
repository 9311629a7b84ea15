from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

from cli.shop import SHOP, write_program
from potok.cli.queries.program import BrokenProgram, NoSuchProgram, NoTopology, load_topology, split
from potok.errors import PotokError
from potok.topology.validate import EmptyTopology

TWO = """
from potok import StreamsBuilder

def make(name):
    builder = StreamsBuilder(name)
    builder.stream("orders").to("copies")
    return builder

def fresh():
    return make("fresh")

first, second = make("one"), make("two")
"""


@pytest.mark.parametrize(
    ("program", "parts"),
    [
        ("shop.py", ("shop.py", "")),
        ("shop.py:builder", ("shop.py", "builder")),
        ("dir/shop.py:app.builder", ("dir/shop.py", "app.builder")),
        ("shop.orders:builder", ("shop.orders", "builder")),
        ("shop.orders", ("shop.orders", "")),
    ],
)
def test_the_name_follows_the_colon(program: str, parts: tuple[str, str]) -> None:
    assert split(program) == parts


def test_the_only_builder_is_found_and_the_script_part_does_not_run(tmp_path: Path) -> None:
    assert load_topology(write_program(tmp_path)).name == "shop"


def test_a_program_that_runs_itself_is_loaded_and_not_run(tmp_path: Path) -> None:
    program = write_program(tmp_path, SHOP + "\nimport potok\npotok.run(builder)\n")
    assert load_topology(program).name == "shop"


def test_a_program_that_starts_a_query_itself_is_refused_with_its_line(tmp_path: Path) -> None:
    program = write_program(tmp_path, SHOP + "\nimport potok\nquery = potok.start(builder)\n")
    with pytest.raises(PotokError, match="starts a query while it is loaded") as refused:
        load_topology(program)
    assert "__main__" in refused.value.hint


def test_a_topology_and_its_builder_count_as_one_program(tmp_path: Path) -> None:
    assert load_topology(write_program(tmp_path, SHOP + "\ntopology = builder.build()\n")).name == "shop"


def test_of_several_one_is_named(tmp_path: Path) -> None:
    program = write_program(tmp_path, TWO)
    assert load_topology(f"{program}:second").name == "two"
    with pytest.raises(NoTopology) as found:
        load_topology(program)
    assert found.value.hint == f"name one: {program}:first or {program}:second"


def test_a_function_that_makes_one_is_called(tmp_path: Path) -> None:
    assert load_topology(write_program(tmp_path, TWO) + ":fresh").name == "fresh"


def test_a_module_is_found_by_its_name() -> None:
    assert load_topology("potok.demo.topology:build").name == "shop-orders"


@pytest.mark.parametrize("place", ["nosuch.py", "nosuch", "no.such.module", "."])
def test_what_is_neither_file_nor_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoSuchProgram) as found:
        load_topology(place)
    assert found.value.message == f'cannot find the program "{place}"'


def test_a_misspelt_file_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.py").touch()
    with pytest.raises(NoSuchProgram) as found:
        load_topology("ordrs.py")
    assert found.value.hint == "did you mean orders.py?"


@pytest.mark.parametrize(
    ("text", "message", "line", "rendered"),
    [
        ("import potok\nbulder.stream('x')\n", "NameError: name 'bulder' is not defined", 2, "bulder.stream('x')"),
        ("import potok\n\nx = = 1\n", "SyntaxError: invalid syntax", 3, "x = = 1"),
        ("import nosuchthing\n", "ModuleNotFoundError: No module named 'nosuchthing'", 1, "import nosuchthing"),
        ("def f():\n    return 1 / 0\nf()\n", "ZeroDivisionError: division by zero", 2, "return 1 / 0"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3", 2, "sys.exit(3)"),
    ],
)
def test_an_error_of_the_program_is_shown_with_its_line(
    tmp_path: Path, text: str, message: str, line: int, rendered: str
) -> None:
    program = write_program(tmp_path, text, "broken.py")
    with pytest.raises(BrokenProgram) as found:
        load_topology(program)
    assert found.value.message == f'"{program}" cannot be loaded: {message}'
    assert str(found.value.at) == f"{program}:{line}"
    assert found.value.hint == f"the line is: {rendered}"


def test_an_error_of_a_named_function_is_shown_too(tmp_path: Path) -> None:
    program = write_program(tmp_path, "def build():\n    raise ValueError('no')\n")
    with pytest.raises(BrokenProgram, match="ValueError: no"):
        load_topology(f"{program}:build")


def test_a_topology_error_is_not_wrapped(tmp_path: Path) -> None:
    program = write_program(tmp_path, "from potok import StreamsBuilder\nbuilder = StreamsBuilder('x')\n")
    with pytest.raises(EmptyTopology):
        load_topology(program)


def test_a_program_without_a_builder_says_what_to_do(tmp_path: Path) -> None:
    program = write_program(tmp_path, "x = 1\n")
    with pytest.raises(NoTopology, match="there is no StreamsBuilder"):
        load_topology(program)
    with pytest.raises(NoTopology, match='there is no "y"'):
        load_topology(f"{program}:y")
    with pytest.raises(NoTopology, match="is a int, not a topology"):
        load_topology(f"{program}:x")


def test_functions_of_the_program_and_its_sibling_modules_are_pickled_by_value(tmp_path: Path) -> None:
    (tmp_path / "topology").write_bytes(cloudpickle.dumps(load_topology(write_program(tmp_path / "program"))))
    program = (
        "import pickle, sys\n"
        "topology = pickle.load(open('topology', 'rb'))\n"
        "large, fee = topology.node('orders.filter').predicate, topology.node('orders.filter.map_values').function\n"
        "print(large({'amount': 101.5}), fee({'amount': 1}), 'pricing' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True {'amount': 1, 'fee': 1.5} False"


def test_functions_of_installed_packages_travel_by_name(tmp_path: Path) -> None:
    load_topology(write_program(tmp_path))
    assert b"potok.cli.queries.program" in cloudpickle.dumps(split)
    assert pickle.loads(cloudpickle.dumps(split)) is split
