"""The documents name files that exist, and nothing in the tree names one machine's directories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.tree import ROOT, files

DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
ENDINGS = r"\.(?:py|md|toml|sh|html|css|js|properties|png|svg)"
TOPS = r"(?:src|tests|scripts|examples|benchmarks|docs|\.ci)"
USER_FILES = {"potok.toml", "main.py", "app.py"}
"""What a reader writes, not what lies here."""

SHORT_NAME = re.compile(rf"[\w./-]+{ENDINGS}|[\w.-]+(?:/[\w.-]+)*/")
TOP_NAME = re.compile(rf"(?<![\w./-]){TOPS}/[\w./-]*\w/?")
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|Users|root|work)/\w+")


def missing_paths(root: Path) -> list[str]:
    names = {path.name for path in files(root)}
    return [
        f"{document}: {named}"
        for document in DOCUMENTS
        if (root / document).exists()
        for named in sorted(set(_named((root / document).read_text())))
        if not _exists(root, named, names)
    ]


def machine_paths(root: Path) -> list[str]:
    found = []
    for path in files(root):
        try:
            text = (root / path).read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path}: {match}" for match in MACHINE_PATH.findall(text)]
    return found


def _named(text: str) -> Iterator[str]:
    """Links, paths from the top anywhere, and between backticks also paths from the package and bare file names."""
    yield from LINK.findall(text)
    yield from TOP_NAME.findall(text)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for quoted in re.findall(r"`([^`\n]+)`", prose):
        if SHORT_NAME.fullmatch(quoted):
            yield quoted


def _exists(root: Path, named: str, names: set[str]) -> bool:
    if named in USER_FILES or ("/" not in named and named in names):
        return True
    return any((parent / named).exists() for parent in (root, root / "src" / "potok"))


def test_every_path_in_the_documents_exists() -> None:
    assert missing_paths(ROOT) == []


def test_no_machine_path_is_in_the_tree() -> None:
    assert machine_paths(ROOT) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("see `src/potok/log/open.py`", []),
        ("see `log/open.py`", []),
        ("see `open.py`", []),
        ("see `log/`", []),
        ("[guide](src/potok/log/open.py#top)", []),
        ("[site](https://example.org/x.py) and `application/json` and `potok.toml`", []),
        ("see `log/shut.py`", ["log/shut.py"]),
        ("see `shut.py`", ["shut.py"]),
        ("see `attic/`", ["attic/"]),
        ("see src/potok/log/shut.py", ["src/potok/log/shut.py"]),
        ("```\nsrc/potok/attic/  old things\n```", ["src/potok/attic/"]),
        ("[guide](docs/guide.md)", ["docs/guide.md"]),
    ],
)
def test_a_path_that_does_not_exist_is_found(tmp_path: Path, text: str, missing: list[str]) -> None:
    (tmp_path / "src" / "potok" / "log").mkdir(parents=True)
    (tmp_path / "src" / "potok" / "log" / "open.py").write_text("")
    (tmp_path / "README.md").write_text(text)
    assert missing_paths(tmp_path) == [f"README.md: {named}" for named in missing]


def test_a_machine_path_is_found(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("it lies in " + "/".join(("", "home", "anna", "potok")))
    (tmp_path / "other.md").write_text("a route such as /orders/home and a picture at img/home/x.png")
    assert machine_paths(tmp_path) == ["notes.md: " + "/".join(("", "home", "anna"))]
