"""Operations that Python would answer, wrongly, for any object: refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.expressions.tracing.refusal import NotTraceable


def _refuse(what: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise NotTraceable(what)

    return refuse


class Opaque:
    """The second line of defence after the bytecode's allow-list: operations that a proxy refuses."""

    __slots__ = ()

    __bool__ = _refuse("it asks whether a value is true; use & | and potok.functions.when")
    __len__ = _refuse("len() is not traced; use potok.functions.length")
    __iter__ = __reversed__ = __next__ = _refuse("it goes through a value")
    __contains__ = _refuse("`in` is not traced; use potok.functions.isin or contains")
    __int__ = __float__ = __complex__ = __index__ = _refuse("a conversion to a number is not traced")
    __round__ = __trunc__ = __floor__ = __ceil__ = _refuse("rounding is not traced")
    __abs__ = _refuse("abs() is not traced; use potok.functions.absolute")
    __divmod__ = __rdivmod__ = __matmul__ = __rmatmul__ = _refuse("this operator is not traced")
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse("shifting bits is not traced")
    __str__ = __bytes__ = __format__ = _refuse("formatting is not traced; use potok.functions.concat")
    __call__ = _refuse("it calls a value")
    __setitem__ = __delitem__ = __setattr__ = __delattr__ = _refuse("it changes its argument")
    __enter__ = __exit__ = __await__ = _refuse("with and await are not traced")
    __lt__ = __le__ = __gt__ = __ge__ = _refuse("it compares a method that it does not call")
    __eq__ = __ne__ = _refuse("it compares a method that it does not call")
    __hash__ = _refuse("a value is used as a key of a dict or an element of a set")
