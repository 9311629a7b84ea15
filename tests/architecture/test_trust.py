"""Bytes that can run code are read only where they come from this program itself, by way of Spark.

State, ledgers, catalogs, snapshots and backups lie where others may write, so what is read from there is data.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from architecture.tree import ROOT, files

RUNS_CODE = {"pickle", "_pickle", "cPickle", "cloudpickle", "marshal", "dill", "shelve", "joblib", "jsonpickle"}
READS = {"loads", "load", "Unpickler", "_Unpickler", "_loads", "_load", "open", "decode"}
BUILTINS = {"eval", "exec", "compile"}

ALLOWED = {
    "src/potok/runtime/batches/task.py": "plans, specs and shuffle blocks, through Spark's own channels",
    "src/potok/runtime/batches/task_output.py": "reports and output of tasks, through Spark's own channels",
    "src/potok/runtime/batches/executor.py": "reports of tasks to their driver, through Spark's own channels",
    "src/potok/operators/core/chunk.py": "shuffle blocks between tasks; staged output with a digest from Spark",
    "src/potok/operators/windows/event_windows.py": "shuffle blocks between tasks, through Spark's own channels",
    "src/potok/cli/queries/program.py": "runs the program that the user names",
}


def readers_of_code(root: Path) -> list[str]:
    found = []
    for path in files(root, "*.py"):
        if path.parts[0] == "src" and str(path) not in ALLOWED:
            found += [f"{path}:{line} uses {what}" for line, what in _uses((root / path).read_text())]
    return found


def _uses(text: str) -> list[tuple[int, str]]:
    tree = ast.parse(text)
    names: dict[str, str] = {}
    uses: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {item.asname or item.name.split(".")[0]: item.name for item in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in RUNS_CODE:
            uses += [(node.lineno, f"{node.module}.{item.name}") for item in node.names if item.name in READS | {"*"}]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id, "")
            if module.split(".")[0] in RUNS_CODE and node.attr in READS:
                uses.append((node.lineno, f"{module}.{node.attr}"))
        elif isinstance(node, ast.Call):
            uses += _called(node)
    return uses


def _called(node: ast.Call) -> list[tuple[int, str]]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if isinstance(node.func, ast.Name) and name in BUILTINS:
        return [(node.lineno, name)]
    given = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    if name in ("__import__", "import_module") and RUNS_CODE & set(map(str, given)):
        return [(node.lineno, f"{name}({given[0]!r})")]
    return []


def test_only_what_this_program_handed_to_spark_is_unpickled() -> None:
    assert readers_of_code(ROOT) == []


def test_each_listed_module_still_unpickles() -> None:
    assert [path for path in ALLOWED if not _uses((ROOT / path).read_text())] == []


@pytest.mark.parametrize(
    ("text", "violations"),
    [
        ("import pickle\nx = pickle.loads(b'')", 1),
        ("import pickle\nload = pickle.loads", 1),
        ("import pickle as p\np.load(f)", 1),
        ("import cloudpickle\ncloudpickle.loads(b'')", 1),
        ("from pickle import loads", 1),
        ("from pickle import loads as data", 1),
        ("from pickle import *", 1),
        ("import pickle\nclass U(pickle.Unpickler): pass", 1),
        ("import marshal\nmarshal.loads(b'')", 1),
        ("def f():\n    import dill\n    return dill.load(f)", 1),
        ("import importlib\nimportlib.import_module('pickle')", 1),
        ("eval('1')", 1),
        ("exec('1')", 1),
        ("import pickle\npickle.dumps(1)", 0),
        ("import re\nre.compile('x')", 0),
        ("import json\njson.loads('1')", 0),
    ],
)
def test_other_readers_are_found(tmp_path: Path, text: str, violations: int) -> None:
    file = tmp_path / "src" / "potok" / "state" / "codec.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert len(readers_of_code(tmp_path)) == violations
