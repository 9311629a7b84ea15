"""What zones are called in English: PST, Pacific Standard Time. The names are those of the Unicode CLDR, as Java has
them; zone_names.tsv has a line for each set of names, with the zones that go by it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from potok.compat.java.dates.calendar import SECOND_NANOS
from potok.compat.java.dates.zones import Zone

if TYPE_CHECKING:
    from potok.compat.java.dates.formatting import Moment

_SUMMER_IS_STANDARD: Final = frozenset({"Europe/Dublin", "Eire", "Africa/Casablanca", "Africa/El_Aaiun"})
"""Zones whose law calls summer the normal time, and winter the exception. Their names do not."""


@dataclass(frozen=True, slots=True)
class _Names:
    """Long and short, each for winter, summer, and for both."""

    winter: tuple[str, str]
    summer: tuple[str, str]
    generic: tuple[str, str]


@lru_cache(maxsize=1)
def _names() -> dict[str, _Names]:
    found = {}
    for line in (files(__package__) / "zone_names.tsv").read_text("utf-8").splitlines():
        cells = line.split("\t")
        names = _Names((cells[0], cells[1]), (cells[2], cells[3]), (cells[4], cells[5]))
        found.update(dict.fromkeys(cells[6].split(" "), names))
    return found


def zone_name(zone: Zone, moment: Moment, *, full: bool, generic: bool) -> str:
    """The name of a zone at a moment, or its id if it has none."""
    names = _names().get(zone.id)
    if names is None or zone.is_offset:
        return zone.id
    if generic:
        return names.generic[not full]
    return (names.summer if _is_summer(zone, moment) else names.winter)[not full]


def _is_summer(zone: Zone, moment: Moment) -> bool:
    if zone.region is None or moment.days is None or moment.nanos is None:
        return False
    instant = moment.days * 86_400 + moment.nanos // SECOND_NANOS - moment.offset
    summer = zone.is_summer(instant)
    return not summer if zone.id in _SUMMER_IS_STANDARD else summer


@lru_cache(maxsize=2)
def zones_by_name(full: bool) -> dict[str, str]:
    """Zones by their names in lower case. A name that several zones have is that of the first one, in the order of the
    file: the one that CLDR takes for the whole."""
    found: dict[str, str] = {}
    for zone, names in _names().items():
        for pair in (names.winter, names.summer, names.generic):
            found.setdefault(pair[not full].lower(), zone)
    return found
