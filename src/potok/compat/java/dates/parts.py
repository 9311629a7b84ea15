"""The parts that date patterns are made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    text: str


@dataclass(frozen=True, slots=True)
class Number:
    """A field in digits. `sign` is normal (a minus), never, or exceeds (a plus if there are more than `least` digits).

    `following` digits belong to the fields right behind it, which have a fixed width: it leaves them over.
    """

    field: str
    least: int
    most: int
    sign: str = "never"
    two_digits: bool = False
    """A year by its last two digits, from 2000 to 2099."""
    following: int = 0


@dataclass(frozen=True, slots=True)
class Fraction:
    """The first digits of the fraction of a second."""

    digits: int


@dataclass(frozen=True, slots=True)
class Name:
    """A field in words. `style` is full, short or narrow."""

    field: str
    style: str


@dataclass(frozen=True, slots=True)
class Offset:
    """The distance to UTC: `minutes` and `seconds` are always, needed (when not zero) or never there."""

    zero: str
    minutes: str
    seconds: str
    colon: bool


@dataclass(frozen=True, slots=True)
class GmtOffset:
    """`GMT+3`, or if `full` `GMT+03:00`."""

    full: bool


@dataclass(frozen=True, slots=True)
class ZoneId:
    """`Europe/Paris`."""


@dataclass(frozen=True, slots=True)
class ZoneName:
    """`CET`, or if `full` `Central European Standard Time`; `generic` does not distinguish winter from summer."""

    full: bool
    generic: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """An optional section, in brackets: present as a whole or not at all."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Padded:
    """A part that spaces on its left fill up to a width."""

    part: Part
    width: int


Part = Literal | Number | Fraction | Name | Offset | GmtOffset | ZoneId | ZoneName | Section | Padded


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    parts: tuple[Part, ...]
