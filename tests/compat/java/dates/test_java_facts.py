"""Patterns mean what they mean to Java: java.tsv was written by Java 17 itself (`LANG=C.UTF-8`, English)."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.compat.java.dates.formatting import Moment, show
from potok.compat.java.dates.patterns import pattern_of
from potok.compat.java.dates.zones import zone_named
from potok.sql.functions.dates.parsing import _day, _time, milliseconds_of

FACTS = [line.split("\t") for line in (Path(__file__).parent / "java.tsv").read_text("utf-8").splitlines()]
"""What is done, pattern, value or text, zone, and what comes of it: `!` is a refusal."""


def found(what: str, pattern: str, value: str, zone: str) -> str:
    try:
        match what:
            case "ft":
                offset = zone_named(zone).offset_at(int(value) // 1000)
                days, rest = divmod(int(value) + offset * 1000, 86_400_000)
                return show(pattern_of(pattern), Moment(days, rest * 1_000_000, zone_named(zone), offset))
            case "fd":
                return show(pattern_of(pattern), Moment(days=int(value)))
            case "fh":
                return show(pattern_of(pattern), Moment(nanos=int(value) * 1_000_000))
            case "pt":
                return str(milliseconds_of(value, pattern, zone))
            case "pd":
                return str(_day(value, pattern))
        return str(_time(value, pattern))
    except ValueError:
        return "!"


@pytest.mark.parametrize("what", ["ft", "fd", "fh", "pt", "pd", "ph"])
def test_dates_and_times_are_shown_and_read_as_by_java(what: str) -> None:
    facts = [fact for fact in FACTS if fact[0] == what]
    assert len(facts) > 20
    wrong = [(fact, found(*fact[:4])) for fact in facts if found(*fact[:4]) != fact[4]]
    assert wrong == []


ZONES = {
    "Z": "Z",
    "+5": "+05:00",
    "+0530": "+05:30",
    "-05:30:15": "-05:30:15",
    "UTC": "UTC",
    "GMT+3": "GMT+03:00",
    "UTC+0": "UTC",
    "GMT0": "GMT0",
    "Etc/GMT+3": "Etc/GMT+3",
}


@pytest.mark.parametrize("name", ZONES)
def test_zones_have_the_names_that_java_takes(name: str) -> None:
    assert zone_named(name).id == ZONES[name]


@pytest.mark.parametrize(
    "name", ["", "A", "z", "+", "+5:30", "+18:01", "+05:3015", "PST", "europe/paris", "Europe", "../etc/passwd", "UTC+"]
)
def test_other_names_of_zones_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="time zone"):
        zone_named(name)


def test_a_time_that_clocks_leap_over_is_as_much_later() -> None:
    assert milliseconds_of("2021-03-28 02:30", "yyyy-MM-dd HH:mm", "Europe/Paris") == milliseconds_of(
        "2021-03-28 03:30", "yyyy-MM-dd HH:mm", "Europe/Paris"
    )


def test_a_time_that_clocks_show_twice_is_the_first_one() -> None:
    assert milliseconds_of("2021-10-31 02:30", "yyyy-MM-dd HH:mm", "Europe/Paris") == milliseconds_of(
        "2021-10-31 02:30 +02:00", "yyyy-MM-dd HH:mm XXX", "Europe/Paris"
    )


def test_time_zones_work_beyond_the_years_of_python() -> None:
    paris = zone_named("Europe/Paris")
    summer = milliseconds_of("+12021-07-01", "yyyy-MM-dd") // 1000
    assert paris.offset_at(summer) == 7200
    assert paris.offset_at(-(10**12)) == paris.offset_at(-(10**11))
