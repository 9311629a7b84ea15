"""The central promise of tracing: natively or as Python, a lambda gives the same."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from potok.expressions import Traced, functions, trace

from . import grammar
from .agreement import ARGUMENTS, assert_agrees

SCOPE: dict[str, Any] = {**functions.FUNCTIONS, **vars(grammar)}


@settings(max_examples=1500)
@given(
    source=grammar.lambdas,
    keys=st.lists(st.one_of(grammar.any_text, st.none()), min_size=4, max_size=4),
    values=st.lists(st.one_of(grammar.values, grammar.values, grammar.values, st.none()), min_size=4, max_size=4),
)
def test_a_traced_lambda_gives_what_python_gives_in_every_row_it_vouches_for(source: str, keys: list[Any], values: list[Any]) -> None:
    function = eval(source, dict(SCOPE))
    found = trace(function, ARGUMENTS)
    if not isinstance(found, Traced):
        event(f"untraceable: {found.reason}")
        return
    suspects = assert_agrees(function, keys, values, found.expr)
    event(f"traced, {'some' if suspects else 'no'} rows suspect")
