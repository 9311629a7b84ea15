"""Random row patterns as SQL, and what naive backtracking says of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.oracle.row_patterns import (
    Anchor,
    AnyOrder,
    Chain,
    Condition,
    Either,
    Outcome,
    RowPatternOracle,
    Taken,
    Times,
    Variable,
)

Rows = list[dict[str, Any]]


def _first_a(rows: Rows, taken: Taken) -> Any:
    return next((rows[took.row]["PRICE"] for took in taken if took.name == "A"), None)


def _prices(rows: Rows, taken: Taken, name: str) -> list[int]:
    return [rows[took.row]["PRICE"] for took in taken if name in ("", took.name)]


CONDITIONS: dict[str, tuple[str, Condition]] = {
    "A": ("price > 3", lambda rows, taken, at: rows[at]["PRICE"] > 3),
    "B": ("price < PREV(price)", lambda rows, taken, at: at > 0 and rows[at]["PRICE"] < rows[at - 1]["PRICE"]),
    "C": (
        "C.price > FIRST(A.price)",
        lambda rows, taken, at: _first_a(rows, taken) is not None and rows[at]["PRICE"] > _first_a(rows, taken),
    ),
    "D": ("SUM(D.price) < 7", lambda rows, taken, at: sum(_prices(rows, taken, "D")) < 7),
    "NEVER": ("price < 0 OR price IS NULL", lambda rows, taken, at: False),
}
"""E has no condition."""

SKIPS = {
    "PAST LAST ROW": ("PAST", ""),
    "TO NEXT ROW": ("NEXT", ""),
    "TO FIRST A": ("FIRST", "A"),
    "TO LAST B": ("LAST", "B"),
    "TO C": ("LAST", "C"),
}
MEASURES = (
    "FIRST(A.price) AS first_a, LAST(s.price) AS last_s, RUNNING COUNT(*) AS n, CLASSIFIER() AS c, "
    "MATCH_NUMBER() AS m, FINAL SUM(D.price) AS d, FINAL LAST(price) AS last, PREV(B.price) AS before_b"
)
SUBSET = "s = (A, C)"


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2, *, excluded: bool = False) -> Any:
    kind = draw(st.sampled_from(["variable"] * 3 + (["chain", "either", "any", "except"] if depth else [])))
    below = {"depth": depth - 1, "excluded": excluded or kind == "except"}
    if kind == "variable":
        made: Any = Variable(draw(st.sampled_from("ABCDE")), excluded)
    elif kind == "any":
        made = AnyOrder((draw(patterns(**below)), draw(patterns(**below))))
    elif kind == "except":
        made = draw(patterns(**below))
    else:
        parts = tuple(draw(st.lists(patterns(**below), min_size=2, max_size=3)))
        made = Chain(parts) if kind == "chain" else Either(parts)
    bounds = draw(st.sampled_from([None] * 4 + [(0, None), (1, None), (0, 1), (2, 2), (1, 3), (0, 2)]))
    if bounds is not None:
        made = Times(made, *bounds, draw(st.booleans()))
    return made


def text_of(part: Any, *, excluded: bool = False) -> str:
    match part:
        case Variable(name, own):
            return f"{{- {name} -}}" if own and not excluded else name
        case Chain(parts):
            return f"({' '.join(text_of(one) for one in parts)})"
        case Either(options):
            return f"({' | '.join(text_of(one) for one in options)})"
        case AnyOrder(options):
            return f"PERMUTE({', '.join(text_of(one) for one in options)})"
        case Anchor(symbol):
            return symbol
    most = "" if part.most is None else part.most
    return f"({text_of(part.body)}){{{part.least},{most}}}{'?' if part.reluctant else ''}"


def variables_of(part: Any) -> set[str]:
    match part:
        case Variable(name):
            return {name}
        case Chain(parts) | Either(parts) | AnyOrder(parts):
            return set().union(*map(variables_of, parts))
        case Times():
            return variables_of(part.body)
    return set()


def expected(pattern: Any, rows: Rows, rendered: str, skip: str, within_ms: int | None, *, bounded: bool) -> list[Any]:
    """Return the rows that a partition gives, without the columns that are the same in all of them."""
    conditions = {name: condition for name, (_, condition) in CONDITIONS.items()}
    oracle = RowPatternOracle(pattern, conditions, rows, skip=SKIPS[skip], within_ms=within_ms, bounded=bounded)
    found = oracle.find()
    if rendered == "ONE ROW PER MATCH":
        return [_measured(rows, match.taken, len(match.taken), match.number) for match in found.matches]
    return _all_rows(found, rows, rendered)


def _all_rows(found: Outcome, rows: Rows, rendered: str) -> list[Any]:
    made: list[tuple[int, int, list[Any]]] = []
    for match in found.matches:
        shows_empty = "OMIT" not in rendered
        if not match.taken and shows_empty:
            made.append((match.start, match.start, [*_measured(rows, (), 0, match.number), rows[match.start]["PRICE"]]))
        for index, took in enumerate(match.taken):
            if not took.excluded:
                values = _measured(rows, match.taken, index + 1, match.number)
                made.append((match.start, took.row, [*values, rows[took.row]["PRICE"]]))
    if "UNMATCHED" in rendered:
        made += [(row, row, [*[None] * 8, rows[row]["PRICE"]]) for row in found.unmatched]
    return [values for _, _, values in sorted(made, key=lambda one: one[:2])]


def _measured(rows: Rows, taken: Taken, upto: int, number: int) -> list[Any]:
    running = taken[:upto]
    a, s, d = _prices(rows, running, "A"), [t for t in running if t.name in "AC"], _prices(rows, taken, "D")
    b = [took.row for took in running if took.name == "B"]
    return [
        a[0] if a else None,
        rows[s[-1].row]["PRICE"] if s else None,
        upto,
        running[-1].name if running else None,
        number,
        sum(d),
        rows[taken[-1].row]["PRICE"] if taken else None,
        rows[b[-1] - 1]["PRICE"] if b and b[-1] else None,
    ]
