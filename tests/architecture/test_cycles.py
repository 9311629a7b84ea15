"""No module imports itself through others, imports inside functions included."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

from architecture.tree import ROOT, absolute, files

Graph = Mapping[str, Set[str]]


HANDLES = {
    f"potok.dsl.{name}"
    for name in (
        "aggregating",
        "cogrouped_stream",
        "grouped_stream",
        "grouped_table",
        "join_steps",
        "joining",
        "matched_stream",
        "processed_stream",
        "processing",
        "stream",
        "table",
        "table_joining",
    )
}
"""The handles of the DSL, each with methods that return others: a stream becomes a table, and a table a stream."""


def import_cycles(root: Path) -> list[list[str]]:
    """Return the groups of modules that reach each other by imports, each sorted by name."""
    return [sorted(group) for group in strongly_connected(import_graph(root)) if len(group) > 1]


def import_graph(root: Path) -> Graph:
    """Return which modules each module imports when it runs: what only the type checker reads does not count."""
    paths = {_module(path): path for path in files(root, "*.py") if path.parts[0] == "src"}
    return {module: frozenset(_imported(root, path, paths.keys())) - {module} for module, path in paths.items()}


def strongly_connected(graph: Graph) -> list[set[str]]:
    """Return the strongly connected components: a second search, against the edges, in the order of the first."""
    finished: list[str] = []
    seen: set[str] = set()
    for start in graph:
        _search(graph, start, seen, finished)
    importers: dict[str, set[str]] = {module: set() for module in graph}
    for module, targets in graph.items():
        for target in targets:
            importers[target].add(module)
    seen, found = set(), []
    for start in reversed(finished):
        group: list[str] = []
        _search(importers, start, seen, group)
        if group:
            found.append(set(group))
    return found


def _search(graph: Graph, start: str, seen: set[str], finished: list[str]) -> None:
    """Visit what `start` reaches and append each module once everything behind it has been visited."""
    if start in seen:
        return
    seen.add(start)
    ahead = [(start, iter(graph[start]))]
    while ahead:
        module, targets = ahead[-1]
        target = next((target for target in targets if target not in seen), None)
        if target is None:
            finished.append(module)
            ahead.pop()
        else:
            seen.add(target)
            ahead.append((target, iter(graph[target])))


def _imported(root: Path, path: Path, modules: Set[str]) -> Iterator[str]:
    for node in _running(ast.parse((root / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(path, node)
            names = {f"{module}.{name.name}" for name in node.names}
            yield from names & modules
            if names - modules and module in modules:
                yield module


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module without those under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from _running(child)


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")


def test_no_modules_import_each_other_in_a_cycle() -> None:
    assert [cycle for cycle in import_cycles(ROOT) if not HANDLES.issuperset(cycle)] == []


@pytest.mark.parametrize(
    "line",
    [
        "from potok.state.table import Table",
        "import potok.state.table",
        "from potok.state import table",
        "from .table import Table",
        "def late():\n    from potok.state.table import Table",
        "def late():\n    if True:\n        from potok.state import table",
    ],
)
def test_a_cycle_is_found_wherever_its_imports_are_written(tmp_path: Path, line: str) -> None:
    write(tmp_path, "table.py", "from potok.state.cell import Cell")
    write(tmp_path, "cell.py", "import pyarrow\nfrom potok.state.shard import Shard")
    write(tmp_path, "shard.py", line)
    write(tmp_path, "reader.py", "from potok.state.table import Table")
    assert import_cycles(tmp_path) == [["potok.state.cell", "potok.state.shard", "potok.state.table"]]


def test_a_cycle_through_the_names_of_a_package_is_found(tmp_path: Path) -> None:
    write(tmp_path, "__init__.py", "from potok.state.table import Table")
    write(tmp_path, "table.py", "from potok.state import Shard")
    assert import_cycles(tmp_path) == [["potok.state", "potok.state.table"]]


def test_two_cycles_are_two_groups(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("c", "d")):
        write(tmp_path, f"{one}.py", f"import potok.state.{other}\nimport potok.state.d")
        write(tmp_path, f"{other}.py", f"import potok.state.{one}")
    assert sorted(import_cycles(tmp_path)) == [["potok.state.a", "potok.state.b"], ["potok.state.c", "potok.state.d"]]


def test_an_import_for_the_type_checker_makes_no_cycle(tmp_path: Path) -> None:
    write(tmp_path, "table.py", "from potok.state.shard import Shard")
    write(tmp_path, "shard.py", "if TYPE_CHECKING:\n    from potok.state.table import Table")
    assert import_cycles(tmp_path) == []


def write(root: Path, name: str, text: str) -> None:
    path = root / "src" / "potok" / "state" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
