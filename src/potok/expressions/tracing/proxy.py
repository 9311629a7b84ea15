"""Proxies for the arguments of a lambda: operations on them build an expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.expressions import build
from potok.expressions.expr import Expr, StructExpr, walk
from potok.expressions.literals import is_constant
from potok.expressions.operations.registry import METHODS, OPERATIONS
from potok.expressions.python_types import family, python_name, python_type
from potok.expressions.tracing.recorder import Recorder
from potok.expressions.tracing.refusal import NotTraceable, UnknownField
from potok.records.declared_class import all_names, choice_of, class_of


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


def _forward(op: str) -> Callable[[Proxy, object], Proxy]:
    return lambda self, other: _made(self, build.binary, op, self, other)


def _backward(op: str) -> Callable[[Proxy, object], Proxy]:
    return lambda self, other: _made(self, build.binary, op, other, self)


def _compare(op: str) -> Callable[[Proxy, object], Proxy]:
    return lambda self, other: _made(self, build.compare, op, self, other)


def _unary(op: str) -> Callable[[Proxy], Proxy]:
    return lambda self: _made(self, build.unary, op, self)


class Proxy(Opaque):
    """A value that is not known while the lambda is traced."""

    # Dunder names, because every other name may be a field.
    __slots__ = ("__potok_expr__", "__potok_recorder__")
    __potok_expr__: Expr
    __potok_recorder__: Recorder

    def __init__(self, expr: Expr, recorder: Recorder) -> None:
        object.__setattr__(self, "__potok_expr__", expr)
        object.__setattr__(self, "__potok_recorder__", recorder)

    def __repr__(self) -> str:
        return f"<traced {self.__potok_expr__}>"

    def __getitem__(self, key: object) -> Proxy:
        operand = self.__potok_expr__
        return Proxy(self.__potok_recorder__.made(build.item(operand, key), operand), self.__potok_recorder__)

    def __getattr__(self, name: str) -> Any:
        operand, recorder = self.__potok_expr__, self.__potok_recorder__
        kind = family(operand.type)
        if kind == "struct":
            return _struct_attribute(self, name)
        if name in METHODS:
            return Method(self, name)
        operation = OPERATIONS.get(("attribute", name))
        if operation is not None and kind in operation.receivers:
            return Proxy(recorder.made(operation.call([operand]), operand), recorder)
        if kind in ("map", "other") or hasattr(python_type(operand.type), name):
            raise NotTraceable(f"the attribute {name} of {python_name(operand.type)} is not traced")
        return self[name]

    __add__, __radd__ = _forward("+"), _backward("+")
    __sub__, __rsub__ = _forward("-"), _backward("-")
    __mul__, __rmul__ = _forward("*"), _backward("*")
    __truediv__, __rtruediv__ = _forward("/"), _backward("/")
    __floordiv__, __rfloordiv__ = _forward("//"), _backward("//")
    __mod__, __rmod__ = _forward("%"), _backward("%")
    __pow__, __rpow__ = _forward("**"), _backward("**")
    __and__, __rand__ = _forward("&"), _backward("&")
    __or__, __ror__ = _forward("|"), _backward("|")
    __xor__, __rxor__ = _forward("^"), _backward("^")
    __neg__, __pos__, __invert__ = _unary("-"), _unary("+"), _unary("~")
    __lt__, __le__ = _compare("<"), _compare("<=")
    __gt__, __ge__ = _compare(">"), _compare(">=")
    __eq__, __ne__ = _compare("=="), _compare("!=")
    __hash__ = Opaque.__hash__


class Method(Opaque):
    """A bound method of a proxy."""

    __slots__ = ("__potok_name__", "__potok_owner__")
    __potok_owner__: Proxy
    __potok_name__: str

    def __init__(self, owner: Proxy, name: str) -> None:
        object.__setattr__(self, "__potok_owner__", owner)
        object.__setattr__(self, "__potok_name__", name)

    def __call__(self, *args: object, **named: object) -> Proxy:
        owner, name = self.__potok_owner__, self.__potok_name__
        operand, recorder = owner.__potok_expr__, owner.__potok_recorder__
        if family(operand.type) == "struct":
            return _struct_get(owner, *args, **named)
        operation = OPERATIONS["method", name]
        if not all(is_constant(option) for option in (*args, *named.values())):
            raise NotTraceable(f"{name}() is traced only with constant arguments")
        if list(named) != list(operation.parameters[len(args) : len(args) + len(named)]):
            raise NotTraceable(f"{name}() with these named arguments is not traced")
        call = operation.call([operand], (*args, *named.values()))
        return Proxy(recorder.made(call, operand), recorder)


def traced_call(name: str, recorder: Recorder, args: tuple[object, ...], options: tuple[object, ...] = ()) -> Proxy:
    """Trace a call of a Potok function with at least one proxy argument."""
    exprs = [lift(arg, recorder) for arg in args]
    call = OPERATIONS["function", name].call(exprs, options)
    return Proxy(recorder.made(call, *exprs), recorder)


def lift(value: object, recorder: Recorder) -> Expr:
    """Return the expression of a proxy, of a constant, or of a dict or list of them."""
    return recorder.lift(value, _expr_of)


def result_of(returned: object, recorder: Recorder) -> Expr:
    """Return the expression of the result of a traced function."""
    return recorder.result(returned, _expr_of)


def _expr_of(value: object) -> Expr | None:
    return value.__potok_expr__ if type(value) is Proxy else None


def _made(owner: Proxy, constructor: Callable[..., Expr], op: str, *operands: object) -> Proxy:
    recorder = owner.__potok_recorder__
    exprs = [lift(operand, recorder) for operand in operands]
    return Proxy(recorder.made(constructor(op, *exprs), *exprs), recorder)


def _struct_attribute(owner: Proxy, name: str) -> Any:
    """Return a field, unless dict has an attribute of that name: a lambda that runs on real values gets the
    attribute.
    """
    expr = owner.__potok_expr__
    declared = class_of(expr.type)
    if declared is not None:
        return _class_attribute(owner, declared, name)
    if name == "keys":
        return lambda: [field.name for field in expr.type]
    if name == "get":
        return Method(owner, name)
    if hasattr(dict, name):
        raise NotTraceable(f'.{name} is a method of every dict; the field is ["{name}"]')
    if any(hasattr(each, name) or name in all_names(each) for each in choice_of(expr.type).values()) and not any(
        field.name == name for field in expr.type
    ):
        raise NotTraceable(f"{name} is not a field of the topic's values")
    if any(isinstance(node, StructExpr) for node in walk(expr)):
        raise NotTraceable(f'a dict has no attribute {name}; write ["{name}"]')
    return owner[name]


def _class_attribute(owner: Proxy, declared: type, name: str) -> Any:
    """Return a field of a declared class, or of the dict that its instances are too."""
    if any(field.name == name for field in owner.__potok_expr__.type):
        return owner[name]
    if hasattr(declared, name) or name in all_names(declared):
        raise NotTraceable(f"{declared.__name__}.{name} is not a field of the topic's values")
    if name == "keys":
        return lambda: [field.name for field in owner.__potok_expr__.type]
    if name == "get":
        return Method(owner, name)
    if hasattr(dict, name):
        raise NotTraceable(f".{name} of a dict is not traced")
    return owner[name]


def _struct_get(owner: Proxy, *args: object, **named: object) -> Proxy:
    """A row of a typed stream has every field, so the default is never used."""
    if named or len(args) not in (1, 2) or not all(is_constant(arg) for arg in args):
        raise NotTraceable("get() is traced only with constant arguments")
    try:
        return owner[args[0]]
    except UnknownField as error:
        raise NotTraceable(f'get() of "{error.name}", which is not a field') from error
