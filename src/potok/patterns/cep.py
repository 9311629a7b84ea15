"""Complex event processing: patterns over the records of a key.

>>> small = cep.event("small", lambda e: e["amount"] < 10)
>>> big = cep.event("big", lambda e, m: e["amount"] > 100 * m["small"].first["amount"])
>>> fraud = small.times(3).consecutive().followed_by(big).within("10 min")
>>> alerts = payments.group_by_key().match(fraud, after="skip_past_last")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.duration import Duration
from potok.topology.patterns.errors import PatternError, PatternSyntaxError, UnknownVariable
from potok.topology.patterns.parse import parse
from potok.topology.patterns.pattern import Pattern, merged
from potok.topology.patterns.pattern import event as _event
from potok.topology.patterns.pattern import permute as _permute
from potok.topology.patterns.tree import Definition, Semantics, Take

__all__ = [
    "Pattern",
    "PatternError",
    "PatternSyntaxError",
    "UnknownVariable",
    "event",
    "group",
    "pattern",
    "permute",
]


def event(name: str, condition: Callable[..., Any] | None = None) -> Pattern:
    """Return a pattern that takes one record.

    Args:
        name: The variable under which a match contains the record.
        condition: Called with the value of the record, or with the value and the match so far: `m["small"]` is the
            list of values that `small` has taken, with `.first` and `.last`. Without one, every record fits.
    """
    return _event(name, condition)


def group(pattern: Pattern) -> Pattern:
    """Return a sequence as one part, so that quantifiers apply to all of it.

    >>> twice = cep.group(login.followed_by(logout)).times(2)
    """
    return pattern.group()


def permute(*patterns: Pattern) -> Pattern:
    """Return a pattern that takes all of these, in any order; other records may lie between them."""
    return _permute(*patterns)


def pattern(text: str, *, within: Duration | None = None, **events: Pattern | Callable[..., Any] | None) -> Pattern:
    """Parse a pattern in the syntax of SQL's MATCH_RECOGNIZE, with its meaning: records are adjacent, and quantifiers
    are greedy unless `?` follows.

    >>> fraud = cep.pattern("small{3,} big", small=lambda e: e["amount"] < 10, big=big, within="10 min")

    Args:
        text: Variables, groups `( )`, alternatives `|`, `PERMUTE(a, b)`, and the quantifiers `*`, `+`, `?`, `{2}`,
            `{2,}`, `{2,4}`, `{,4}`.
        within: The time from the first record to the last is less than this.
        **events: The condition of each variable, or an event; None is true for every record.
    """
    tree = parse(text, frozenset(events))
    found: list[Definition] = []
    for name, given in events.items():
        if isinstance(given, Pattern):
            if not isinstance(given.tree, Take):
                raise PatternError(f'"{name}" is not a single event', hint="write its structure into the text")
            found.append(Definition(name, given.definitions[0].condition))
        else:
            found.append(_event(name, given).definitions[0])
    made = Pattern(tree, merged(tuple(found)), semantics=Semantics.PREFERRED)
    return made if within is None else made.within(within)
