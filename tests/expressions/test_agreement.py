"""The central promise of tracing: natively or as Python, a lambda gives the same."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from potok.expressions import Traced, functions, trace

from . import grammar
from .agreement import ARGUMENTS, assert_agrees
from .rows import Rows

SCOPE: dict[str, Any] = {**functions.FUNCTIONS, **vars(grammar)}


@settings(max_examples=1500)
@given(source=grammar.lambdas(), seed=st.integers(0, 2**32), count=st.sampled_from([0, 1, 40, 40, 40]))
def test_a_traced_lambda_gives_what_python_gives_in_every_row_it_vouches_for(
    source: str, seed: int, count: int
) -> None:
    function = eval(source, dict(SCOPE))
    found = trace(function, ARGUMENTS)
    if not isinstance(found, Traced):
        event(f"untraceable: {found.reason}")
        return
    rows = Rows(seed)
    suspects = assert_agrees(function, rows.keys(count), rows.values(count), found.expr)
    event(f"traced, {'some' if suspects else 'no'} rows suspect")
