"""Mark fields of events as personal data."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Personal:
    """The mark of a personal field, in `Annotated`."""

    subject: str


def personal(*, subject: str) -> Personal:
    """Mark a field of an event as personal data, which is encrypted with a key of its own for each subject.

    >>> email: Annotated[str, personal(subject="user_id")]

    Args:
        subject: The field of the same event that names the person.
    """
    return Personal(subject)


def split_personal(annotation: Any) -> tuple[Any, str]:
    """Return a type without the mark, and the field that names the subject; empty without a mark."""
    if typing.get_origin(annotation) is typing.Annotated:
        marks = [extra.subject for extra in annotation.__metadata__ if isinstance(extra, Personal)]
        if marks:
            others = [extra for extra in annotation.__metadata__ if not isinstance(extra, Personal)]
            inner = annotation.__origin__
            return (typing.Annotated[(inner, *others)] if others else inner), marks[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [split_personal(part) for part in typing.get_args(annotation)]
        subjects = [subject for _, subject in parts if subject]
        if subjects:
            return typing.Union[tuple(part for part, _ in parts)], subjects[0]  # noqa: UP007 - built at run time
    return annotation, ""
