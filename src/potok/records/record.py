"""`Record`: a base class for models, as an alternative to a decorator."""

from __future__ import annotations

import dataclasses
from typing import Any, dataclass_transform

from potok.records.schemas.annotations import NotGiven


@dataclass_transform(field_specifiers=(dataclasses.field,))
class Record:
    """Every subclass is a dataclass.

    >>> class Order(Record):
    ...     order_id: str
    ...     amount: float = 0.0
    >>> Order("o-1", 120.0).asdict()
    {'order_id': 'o-1', 'amount': 120.0}

    Class keywords of `faust.Record` (`serializer=`, `validation=`, ...) are accepted without effect: the
    format belongs to the topic, and typed values are always checked.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__()
        unknown = options.keys() - _FAUST_OPTIONS
        if unknown:
            raise TypeError(f"{cls.__name__} got unknown class keywords: {', '.join(sorted(unknown))}")
        # A required field after an optional one, as a subclass may add it, is keyword-only.
        dataclasses.dataclass(cls, kw_only=_out_of_order(cls))

    def asdict(self) -> dict[str, Any]:
        """Return the fields as a plain dict, including nested records."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]


def _out_of_order(cls: type) -> bool:
    """Whether a class adds required fields to one that has defaults."""
    own = vars(cls).get("__annotations__", {})
    above = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    inherited = [each for each in above if each.name not in own]
    has_defaults = any(not (_is_absent(each.default) and _is_absent(each.default_factory)) for each in inherited)
    known = {each.name for each in above}
    added = [name for name, hint in own.items() if name not in known and "ClassVar" not in str(hint)]
    return has_defaults and any(name not in vars(cls) for name in added)


def _is_absent(default: object) -> bool:
    return isinstance(default, NotGiven)


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
