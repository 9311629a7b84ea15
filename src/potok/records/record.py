"""`Record`: a base class for models, for those who prefer inheritance to a decorator."""

from __future__ import annotations

import dataclasses
from typing import Any, dataclass_transform


@dataclass_transform(field_specifiers=(dataclasses.field,))
class Record:
    """Every subclass is a dataclass.

    >>> class Order(Record):
    ...     order_id: str
    ...     amount: float = 0.0
    >>> Order("o-1", 120.0).asdict()
    {'order_id': 'o-1', 'amount': 120.0}

    Class keywords of `faust.Record` (`serializer=`, `validation=`, ...) are accepted and mean nothing here: the
    format belongs to the topic, and typed values are always checked.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__()
        unknown = options.keys() - _FAUST_OPTIONS
        if unknown:
            raise TypeError(f"{cls.__name__} got unknown class keywords: {', '.join(sorted(unknown))}")
        dataclasses.dataclass(cls)

    def asdict(self) -> dict[str, Any]:
        """The fields as a plain dict, nested records too."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]


_FAUST_OPTIONS = frozenset(
    {
        "abstract",
        "allow_blessed_key",
        "coerce",
        "coercions",
        "custom_attributes",
        "date_parser",
        "decimals",
        "include_metadata",
        "isodates",
        "namespace",
        "polymorphic_fields",
        "serializer",
        "validation",
    }
)
