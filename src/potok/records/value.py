"""The values that lambdas see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn


def attribute(value: Value, name: str) -> Any:
    """Return a field of a value as an attribute; a struct is a `Value` too."""
    try:
        found = value[name]
    except KeyError:
        raise AttributeError(_missing(value, name)) from None
    return Value(found) if type(found) is dict else found


class Value(dict[str, Any]):
    """A value with fields: `v["amount"]` and `v.amount` are the same.

    It is a dict, so `{**v, "status": "PAID"}` creates a changed copy. A field that has the name of a
    dict method (`items`, `keys`, `get`) is reached by brackets only.

    >>> v = Value({"amount": 120.0, "address": {"city": "Riga"}})
    >>> v.amount, v["amount"], v.address.city
    (120.0, 120.0, 'Riga')
    """

    __slots__ = ()

    if not TYPE_CHECKING:
        __getattr__ = attribute

        def __setattr__(self, name: str, value: object) -> NoReturn:
            raise AttributeError(f'a value cannot be changed in place; create a new one: {{**v, "{name}": ...}}')


def _missing(value: Value, name: str) -> str:
    if name.startswith("__"):
        return name
    known = ", ".join(f'"{field}"' for field in value)
    return (
        f'the value has no field "{name}"; it has {known}' if known else f'the value has no field "{name}"; it is empty'
    )


def wrap(obj: Any) -> Any:
    """Return a plain dict as a `Value`; anything else unchanged.

    >>> wrap({"a": 1}).a
    1
    """
    return Value(obj) if type(obj) is dict else obj
