"""Patterns with bad input, too many open matches, or too many ways to continue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.patterns import cep
from potok.patterns.cep import Pattern, PatternError, PatternSyntaxError
from potok.testing import TestDriver
from potok.topology.inference.infer import infer
from tests.patterns.cep.matching import kind, matched

a, b, c = kind("a"), kind("b"), kind("c")


def match(pattern: Any, **options: Any) -> None:
    StreamsBuilder("cep").stream("in").group_by_key().match(pattern, **options)


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        (a.optional(), "matches without any record", "not optional"),
        (a.followed_by(b.one_or_more()), "unbounded", "within"),
        (a.not_followed_by(b), "never ends without a time limit", "within"),
        (cep.group(a.not_next(b)).times(2), "cannot end with an absence", "behind the group"),
    ],
)
def test_a_pattern_that_cannot_match_or_never_ends_is_refused(pattern: Pattern, message: str, hint: str) -> None:
    with pytest.raises(PatternError, match=message) as caught:
        match(pattern)
    assert hint in caught.value.hint
    assert caught.value.at is not None


def test_a_pattern_whose_condition_is_never_true_is_refused() -> None:
    never = cep.event("never", lambda e: False)
    builder = StreamsBuilder("cep")
    records = builder.stream("in", value="amount bigint").group_by_key()
    a = cep.event("a", lambda e: e["amount"] > 1)
    records.match(a.followed_by(never.optional())).to("out")
    records.match(a | never, name="either")
    infer(builder.build())
    records.match(a.followed_by(never.times(2)), name="both")
    with pytest.raises(PatternError, match="cannot match") as caught:
        infer(builder.build())
    assert '"never"' in caught.value.hint
    assert caught.value.at is not None


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("a b{3,2}", "cannot match", 3),
        ("a $", r"unexpected '\$'", 2),
        ("(a b", "not closed", 0),
        ("a d", '"d" is not defined', 2),
        ("a |", "unexpected end", 3),
        ("a++", r"unexpected '\+'", 2),
        ("PERMUTE(a)", "two to six", 0),
    ],
)
def test_text_that_is_not_a_pattern_is_refused_with_its_position(text: str, message: str, position: int) -> None:
    with pytest.raises(PatternSyntaxError, match=message) as caught:
        cep.pattern(text, a=a, b=b)
    assert caught.value.position == position
    assert caught.value.hint


def test_verbs_that_mean_nothing_are_refused_with_a_hint() -> None:
    with pytest.raises(PatternError, match="could mean the last part") as caught:
        a.followed_by(b).times(2)
    assert "cep.group" in caught.value.hint
    with pytest.raises(PatternError, match="for repetitions"):
        a.greedy()
    with pytest.raises(PatternError, match="without an upper bound"):
        a.times(2).until(lambda e: True)
    with pytest.raises(PatternError, match="two conditions"):
        a.followed_by(cep.event("a", lambda e: False))
    with pytest.raises(PatternError, match="single event"):
        a.not_next(b.followed_by(c))
    with pytest.raises(PatternError, match="positive duration"):
        a.within(0)


def test_options_that_mean_nothing_are_refused() -> None:
    with pytest.raises(PatternError, match="is not known"):
        match(a, after="skip_everything")
    with pytest.raises(PatternError, match="is not complete"):
        match(a, after="skip_to_last")
    with pytest.raises(PatternError, match='names "z"'):
        match(a, after="skip_to_last(z)")
    with pytest.raises(TopologyError, match="must be positive"):
        match(a, max_runs=0)
    with pytest.raises(TopologyError, match="no timeouts"):
        _ = StreamsBuilder("cep").stream("in").group_by_key().match(a).timeouts


def test_the_oldest_of_too_many_open_matches_is_a_dead_letter() -> None:
    found = matched(a.followed_by(b), "a a a b", max_runs=2)
    assert found.matches == ["a2 b4", "a3 b4"]
    assert len(found.dead_letters) == 1
    assert "more than 2 open matches" in found.dead_letters[0]


def test_a_match_with_too_many_ways_to_continue_is_a_dead_letter() -> None:
    pattern = a.followed_by(c.one_or_more().allow_combinations()).followed_by(b).within("1 min")
    found = matched(pattern, f"a {'c ' * 14} a c b")
    assert found.matches == ["a16 c17 b18"]
    assert len(found.dead_letters) == 1
    assert "more than 10,000 ways to continue" in found.dead_letters[0]


def test_a_record_for_which_a_condition_raises_is_a_dead_letter_and_changes_nothing() -> None:
    careless = cep.event("careless", lambda e, m: 1 / (e["at"] - 2) > 0)
    found = matched(a.followed_by(careless), "a c c")
    assert found.matches == ["a1 c3"]
    assert len(found.dead_letters) == 1
    assert "ZeroDivisionError" in found.dead_letters[0]


@dataclass
class Payment:
    amount: int

    def cents(self) -> int:
        return self.amount * 100


def test_conditions_see_instances_of_the_declared_class() -> None:
    small = cep.event("small", lambda e: e.cents() < 1_000)
    big = cep.event("big", lambda e, m: isinstance(e, Payment) and e.cents() > 100 * m["small"].first.cents())
    builder = StreamsBuilder("cep")
    payments = builder.stream("payments", value=Payment)
    payments.group_by_key().match(small.times(2).followed_by(big), name="fraud").to("alerts")
    with TestDriver(builder) as driver:
        for number, amount in enumerate([5, 6, 100, 900]):
            driver.send("payments", Payment(amount), key="ann", timestamp=number)
            driver.run(more_to_come=True)
        driver.send("payments", Payment(0), key="end", timestamp=100)
        driver.run()
        assert not driver.dead_letters()
        assert [record.value for record in driver.read("alerts")] == [
            {"small": [{"amount": 5}, {"amount": 6}], "big": [{"amount": 900}]}
        ]
