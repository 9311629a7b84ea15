"""The generated pages of `docs/` are what the code says."""

from __future__ import annotations

import inspect

import pytest
from docs.generate import api
from docs.generate.docstrings import description
from docs.generate.pages import DOCS, PAGES
from docs.generate.run_examples import examples

import potok
from potok.records.formats.registry import _ALIASES, _FORMATS


@pytest.mark.parametrize("path", PAGES)
def test_a_generated_page_is_up_to_date(path: str) -> None:
    assert (DOCS / path).read_text() == PAGES[path](), "run python -m docs.generate"


def test_every_method_of_the_dsl_has_an_example() -> None:
    methods = {f"{cls.__name__}.{name}" for cls in api.DSL for name, _ in api.members(cls)}
    assert methods - examples().keys() == set()


def test_everything_in_the_library_has_an_example() -> None:
    listed = [each for group in api.LIBRARY.values() for each in group]
    named = {getattr(each, "__name__", "until_window_closes"): each for each in listed}
    assert [name for name, each in named.items() if not api.has_example(name, each, examples())] == []


def test_every_exported_name_is_in_the_reference() -> None:
    listed = {getattr(each, "__name__", "until_window_closes") for group in api.LIBRARY.values() for each in group}
    names = {
        name
        for name in potok.__all__
        if not (inspect.isclass(getattr(potok, name)) and issubclass(getattr(potok, name), BaseException))
    }
    assert names - listed - set(api.SHOWN_WITH) - {"__version__"} == set()


def test_every_format_is_documented() -> None:
    page = (DOCS / "formats.md").read_text()
    names = {name for name in _FORMATS if not name.startswith("debezium")}
    assert {name for name in names - set(_ALIASES) if f"`{name}`" not in page} == {"cloudevents"}


def test_everything_in_the_reference_is_described() -> None:
    listed = [each for group in api.LIBRARY.values() for each in group]
    named = [(getattr(each, "__name__", ""), each) for each in (*api.DSL, *listed) if each is not potok.days]
    named += [(f"{cls.__name__}.{name}", member) for cls in api.DSL for name, member in api.members(cls)]
    named += [
        (f"{cls.__name__}.{name}", each) for cls in listed if inspect.isclass(cls) for name, each in api.members(cls)
    ]
    assert [name for name, documented in named if not description(documented)] == []
