"""Random patterns, as a user would build them."""

from __future__ import annotations

from hypothesis import strategies as st

from potok.patterns import cep
from potok.patterns.cep import Pattern
from potok.topology.patterns.check import check

EVENTS = {
    "a": cep.event("a", lambda e: e["x"] % 2 == 0),
    "b": cep.event("b", lambda e: e["x"] > 3),
    "c": cep.event("c", lambda e: e["x"] in (1, 4)),
    "r": cep.event("r", lambda e, m: e["x"] > sum(one["x"] for one in m["r"])),
}
NAMES = sorted(EVENTS)


@st.composite
def parts(draw: st.DrawFn, depth: int) -> Pattern:
    kinds = ["event"] * 4 + (["group", "choice", "permute"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "event":
        made = EVENTS[draw(st.sampled_from(NAMES))]
    elif kind == "group":
        made = draw(sequences(depth - 1)).group()
    elif kind == "choice":
        made = draw(parts(depth - 1)) | draw(parts(depth - 1))
    else:
        made = cep.permute(draw(parts(depth - 1)), draw(parts(depth - 1)))
    made = cep.group(made)
    return draw(quantified(made))


@st.composite
def quantified(draw: st.DrawFn, made: Pattern) -> Pattern:
    kind = draw(st.sampled_from(["one"] * 4 + ["optional", "more", "times", "range"]))
    if kind == "one":
        return made
    between = draw(st.sampled_from([None, None, 2]))
    if kind == "optional":
        made = made.optional()
    elif kind == "more":
        made = made.times_or_more(draw(st.integers(1, 2)), within=between)
        if draw(st.booleans()):
            made = made.until(lambda e: e["x"] == 5)
    elif kind == "times":
        made = made.times(2, within=between)
    else:
        made = made.times(draw(st.integers(0, 2)), draw(st.integers(2, 3)))
    made = draw(st.sampled_from([_as_it_is, Pattern.greedy, Pattern.reluctant]))(made)
    return draw(st.sampled_from([_as_it_is, Pattern.consecutive, Pattern.allow_combinations]))(made)


def _as_it_is(made: Pattern) -> Pattern:
    return made


@st.composite
def sequences(draw: st.DrawFn, depth: int) -> Pattern:
    made = draw(parts(depth))
    for _ in range(draw(st.integers(0, 2))):
        if draw(st.integers(0, 4)) == 0:
            absent = EVENTS[draw(st.sampled_from(NAMES))]
            made = draw(st.sampled_from([Pattern.not_next, Pattern.not_followed_by]))(made, absent)
        follow = draw(st.sampled_from([Pattern.next, Pattern.followed_by, Pattern.followed_by_any]))
        made = follow(made, draw(parts(depth)))
        if draw(st.integers(0, 4)) == 0:
            made = made.within(draw(st.integers(1, 4)), between="neighbours")
    return made


TEXTS = [
    "a b",
    "a+ b",
    "a+? b",
    "a* b+",
    "a{2,} b?",
    "(a | b)+? c",
    "a (b | c){1,2} a??",
    "PERMUTE(a, b, c)",
    "(a? b)+ c",
    "r{2} a*",
]


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """A pattern that passes the checks."""
    within = draw(st.sampled_from([None, 1, 4, 9, 30]))
    if draw(st.integers(0, 3)) == 0:
        made = cep.pattern(draw(st.sampled_from(TEXTS)), **EVENTS)
    else:
        made = draw(sequences(1))
        if draw(st.integers(0, 4)) == 0:
            absent = EVENTS[draw(st.sampled_from(NAMES))]
            made = draw(st.sampled_from([Pattern.not_next, Pattern.not_followed_by]))(made, absent)
            if made.tree.parts[-1].node.immediately is False and draw(st.booleans()):
                made = made.within(3, between="neighbours")
    made = made if within is None else made.within(within)
    try:
        check(made, None)
    except cep.PatternError:
        return EVENTS["a"].followed_by(EVENTS["b"]).within(5)
    return made
