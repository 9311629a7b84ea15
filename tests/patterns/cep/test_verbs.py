"""Each verb of a pattern takes the records that Flink CEP takes."""

from __future__ import annotations

from potok.patterns import cep
from potok.patterns.cep import Pattern
from tests.patterns.cep.matching import kind, matched, matches

a, b, c = kind("a"), kind("b"), kind("c")


def test_next_takes_only_the_very_next_record() -> None:
    assert matches(a.next(b), "a b a c b") == ["a1 b2"]


def test_followed_by_skips_other_records() -> None:
    assert matches(a.followed_by(b), "a c b b") == ["a1 b3"]


def test_followed_by_any_also_takes_later_records() -> None:
    assert matches(a.followed_by_any(b), "a c b b") == ["a1 b3", "a1 b4"]


def test_not_next_rejects_the_very_next_record_alone() -> None:
    assert matches(a.not_next(c).followed_by(b), "a c b a b c") == ["a4 b5"]


def test_not_followed_by_rejects_a_record_anywhere_between() -> None:
    assert matches(a.not_followed_by(c).followed_by(b), "a d c b a d b") == ["a5 b7"]


def test_not_followed_by_at_the_end_matches_when_the_time_is_over() -> None:
    found = matched(a.not_followed_by(b).within("10 ms"), "a@1 c@5 a@20 b@25")
    assert found.matches == ["a1"]
    assert found.timeouts == []


def test_one_or_more_repeats_with_other_records_between() -> None:
    pattern = a.followed_by_any(b.one_or_more()).followed_by(c).within(100)
    assert sorted(matches(pattern, "a b d b d b c")) == [
        "a1 b2 b4 b6 c7",
        "a1 b2 b4 c7",
        "a1 b2 c7",
        "a1 b4 b6 c7",
        "a1 b4 c7",
        "a1 b6 c7",
    ]


def test_consecutive_repetitions_are_adjacent() -> None:
    pattern = a.followed_by_any(b.one_or_more().consecutive()).followed_by(c)
    assert sorted(matches(pattern, "a b d b d b c")) == ["a1 b2 c7", "a1 b4 c7", "a1 b6 c7"]


def test_allow_combinations_skips_repetitions() -> None:
    assert matches(a.times(2), "a a a") == ["a1 a2", "a2 a3"]
    assert sorted(matches(a.times(2).allow_combinations(), "a a a")) == ["a1 a2", "a1 a3", "a2 a3"]


def test_times_repeats_an_exact_number_of_times() -> None:
    assert matches(a.times(2), "a c a") == ["a1 a3"]
    assert matches(a.times(2).consecutive(), "a c a a") == ["a3 a4"]


def test_times_with_two_numbers_matches_each_of_them() -> None:
    assert sorted(matches(a.times(1, 2).followed_by(b), "a a b")) == ["a1 a2 b3", "a1 b3", "a2 b3"]


def test_times_or_more_has_a_lower_bound() -> None:
    pattern = a.times_or_more(2).consecutive().next(b)
    assert matches(pattern, "a b a a a b") == ["a3 a4 a5 b6", "a4 a5 b6"]


def test_optional_parts_may_be_missing() -> None:
    pattern = a.next(b.optional()).next(c)
    assert matches(pattern, "a c a b c") == ["a1 c2", "a3 b4 c5"]


def test_a_greedy_repetition_keeps_a_record_that_fits_what_follows() -> None:
    first, last = kind("ax", variable="first"), kind("cx", variable="last")
    every = first.one_or_more().followed_by(last).within(100)
    greedy = first.one_or_more().greedy().followed_by(last).within(100)
    assert "a1 x2" in matches(every, "a x c")
    assert matches(greedy, "a x c") == ["a1 x2 c3", "x2 c3"]


def test_a_reluctant_repetition_leaves_a_record_that_fits_what_follows() -> None:
    first, last = kind("ax", variable="first"), kind("cx", variable="last")
    reluctant = first.one_or_more().reluctant().followed_by(last).within(100)
    assert matches(reluctant, "a x c", after="skip_past_last") == ["a1 x2"]


def test_until_ends_a_repetition() -> None:
    pattern = a.one_or_more().until(lambda e: e["kind"] == "b")
    assert sorted(matches(pattern, "a c a b a")) == ["a1", "a1 a3", "a3", "a5"]


def test_until_does_not_end_a_repetition_that_has_not_started() -> None:
    def ended(kinds: str) -> Pattern:
        return kind(kinds, variable="x").one_or_more().until(lambda e: e["kind"] == "c")

    assert sorted(matches(a.followed_by(ended("b")).within("1 min"), "a c b c b")) == ["a1 b3"]
    assert matches(a.followed_by(ended("bc")).within("1 min"), "a d c b") == []
    assert matches(a.followed_by_any(ended("bc")).within("1 min"), "a d c b") == ["a1 b4"]


def test_an_exact_number_of_times_is_never_greedy() -> None:
    pattern = kind("ab", variable="x").times(2).optional().greedy().followed_by(b)
    assert matches(pattern, "c b c") == ["b2"]


def test_a_group_is_repeated_as_a_whole() -> None:
    assert matches(cep.group(a.next(b)).times(2).consecutive(), "a b a b a") == ["a1 b2 a3 b4"]


def test_a_group_of_a_repetition_is_repeated() -> None:
    pairs = cep.group(a.times(2).consecutive()).times(2)
    assert matches(pairs, "a a c a a") == ["a1 a2 a4 a5"]


def test_what_follows_a_group_whose_last_part_is_missing_has_its_own_gap() -> None:
    pattern = cep.group(a.followed_by(b.optional())).followed_by(c).within("10 ms")
    assert matches(pattern, "a d c") == ["a1 c3"]
    pattern = cep.group(a.followed_by(b.optional())).times(2).followed_by(c).within("10 ms")
    assert matches(pattern, "a d a d c") == ["a1 a3 c5"]


def test_alternatives_and_permutations() -> None:
    assert matches((a | b).next(c), "a c b c") == ["a1 c2", "b3 c4"]
    assert matches(cep.permute(a, b, c), "c d a b") == ["c1 a3 b4"]


def test_within_is_exclusive_and_what_had_matched_is_a_timeout() -> None:
    found = matched(a.followed_by(b).within("10 ms"), "a@1 b@10 a@20 b@30")
    assert found.matches == ["a1 b10"]
    assert found.timeouts == ["a20"]


def test_a_match_that_was_found_is_not_a_timeout() -> None:
    found = matched(a.followed_by(b.times_or_more(1)).within("10 ms"), "a@1 b@2", after="skip_past_last")
    assert (found.matches, found.timeouts) == (["a1 b2"], [])


def test_after_a_match_the_next_one_starts_where_the_option_says() -> None:
    pattern, text = b.one_or_more().consecutive().next(c), "b b b c"
    every = ["b1 b2 b3 c4", "b2 b3 c4", "b3 c4"]
    assert matches(pattern, text) == every
    assert matches(pattern, text, after="skip_to_next") == every
    assert matches(pattern, text, after="skip_past_last") == every[:1]
    assert matches(pattern, text, after="skip_to_first(b)") == every
    assert matches(pattern, text, after="skip_to_last(b)") == [every[0], every[2]]


def test_text_prefers_the_longest_repetition_and_then_skips_past_the_match() -> None:
    conditions = {"a": a, "b": b}
    assert matches(cep.pattern("a+ b?", **conditions), "a a b a") == ["a1 a2 b3"]
    assert matches(cep.pattern("a+? b??", **conditions), "a a b") == ["a1", "a2"]


def test_a_condition_reads_the_match_so_far() -> None:
    later = cep.event("later", lambda e, m: e["at"] >= m["a"].first["at"] + 2 * len(m.a))
    assert matches(a.times(2).followed_by(later), "a a a c c c", after="skip_past_last") == ["a1 a2 c5"]


def test_within_between_neighbours_limits_the_time_before_the_last_part_alone() -> None:
    pattern = a.followed_by(b).within("10 ms", between="neighbours").followed_by(c)
    found = matched(pattern, "a@1 b@10 c@500 a@600 b@610 c@620")
    assert found.matches == ["a1 b10 c500"]
    assert found.timeouts == ["a600"]


def test_an_absence_at_the_end_lasts_for_the_time_between_neighbours() -> None:
    pattern = a.followed_by(b).not_followed_by(c).within("10 ms", between="neighbours")
    assert matches(pattern, "a@1 b@100 c@109 a@200 b@300 c@310") == ["a200 b300"]


def test_repetitions_can_be_limited_in_the_time_between_them() -> None:
    pattern = a.one_or_more(within="10 ms").greedy().followed_by(b)
    assert matches(pattern, "a@1 a@9 a@18 b@100", after="skip_past_last") == ["a1 a9 a18 b100"]
    assert matches(a.times(2, within="10 ms"), "a@1 a@11 a@20") == ["a11 a20"]


def test_two_repetitions_of_one_event_have_their_own_until() -> None:
    first = a.one_or_more().until(lambda e: e["kind"] == "b")
    second = a.one_or_more().until(lambda e: e["kind"] == "c")
    assert matches(first.next(b).next(second), "a b a c a", after="skip_past_last") == ["a1 b2 a3"]


def test_an_absence_at_the_end_that_is_reached_in_two_ways_is_one_match() -> None:
    either = cep.group(a | a)
    assert matches(either.not_next(a).within("10 ms"), "a") == ["a1"]
