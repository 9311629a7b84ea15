"""Explain why bytecode cannot be traced, in terms of Python source code."""

from __future__ import annotations

import dis
import inspect
from types import CodeType
from typing import Final

_FLAGS: Final = (
    (inspect.CO_ASYNC_GENERATOR | inspect.CO_COROUTINE, "it is async"),
    (inspect.CO_GENERATOR, "it is a generator"),
    (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS, "it takes *args or **kwargs"),
)

_EAGER: Final = "which Python evaluates before Potok can see it"
_STATE: Final = "it changes a variable outside itself"
_MUTATES: Final = "it changes an object; return a changed copy, such as {**v, ...}"
_FORMATS: Final = "it formats text; use potok.functions.concat"
_IMPORTS: Final = "it imports a module"
_STARRED: Final = "it unpacks arguments or values with *"

_REASONS: Final = {
    "LOAD_ASSERTION_ERROR": "it uses `assert`",
    "IS_OP": f"it uses `is`, {_EAGER}; use potok.functions.is_null",
    "CONTAINS_OP": f"it uses `in`, {_EAGER}; use potok.functions.isin or contains",
    "UNARY_NOT": f"it uses `not`, {_EAGER}; use potok.functions.not_",
    "FORMAT_VALUE": _FORMATS,
    "FORMAT_SIMPLE": _FORMATS,
    "FORMAT_WITH_SPEC": _FORMATS,
    "BUILD_STRING": _FORMATS,
    "IMPORT_NAME": _IMPORTS,
    "IMPORT_FROM": _IMPORTS,
    "STORE_GLOBAL": _STATE,
    "DELETE_GLOBAL": _STATE,
    "STORE_DEREF": _STATE,
    "STORE_SUBSCR": _MUTATES,
    "STORE_SLICE": _MUTATES,
    "STORE_ATTR": _MUTATES,
    "DELETE_SUBSCR": _MUTATES,
    "DELETE_ATTR": _MUTATES,
    "DELETE_FAST": "it uses `del`",
    "RAISE_VARARGS": "it raises",
    "MATCH_CLASS": "it uses `match`",
    "MATCH_MAPPING": "it uses `match`",
    "MATCH_SEQUENCE": "it uses `match`",
    "UNPACK_SEQUENCE": "it unpacks a value",
    "UNPACK_EX": "it unpacks a value",
    "CALL_FUNCTION_EX": _STARRED,
    "DICT_MERGE": _STARRED,
    "LIST_TO_TUPLE": _STARRED,
    "YIELD_VALUE": "it is a generator",
    "SWAP": "it assigns several names at once",
}


def reason_for(code: CodeType) -> str | None:
    """Return the reason that is most useful to a user; None if there is no specific construct."""
    for flags, reason in _FLAGS:
        if code.co_flags & flags:
            return reason
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            return _nested(constant)
    instructions = [instruction for instruction in dis.get_instructions(code) if instruction.opname != "EXTENDED_ARG"]
    names = [instruction.opname for instruction in instructions]
    if any(name == "FOR_ITER" or name.startswith("JUMP_BACKWARD") or "_BACKWARD_" in name for name in names):
        return "it has a loop or a comprehension"
    if code.co_exceptiontable:
        return "it uses `try` or `with`"
    return _branch(names) or next((_REASONS[name] for name in names if name in _REASONS), None)


def _nested(code: CodeType) -> str:
    if code.co_name == "<lambda>":
        return "it has another lambda inside"
    if code.co_name.startswith("<"):
        return "it has a loop or a comprehension"
    return f"it defines {code.co_name} inside"


def _branch(names: list[str]) -> str | None:
    """Return the construct behind a conditional jump. In bytecode they differ only in what stays on the stack."""
    if "LOAD_ASSERTION_ERROR" in names:
        return _REASONS["LOAD_ASSERTION_ERROR"]
    for index, name in enumerate(names):
        if name == "COPY" and index + 1 < len(names) and names[index + 1].startswith(("STORE_FAST", "STORE_GLOBAL")):
            return "it assigns a name inside an expression, or several at once"
        if not _is_conditional(name):
            continue
        before = [earlier for earlier in names[max(0, index - 5) : index] if earlier != "TO_BOOL"]
        keeps = name.endswith("_OR_POP") or before[-1:] == ["COPY"]
        if keeps and before[-1:] == ["COPY"]:
            before.pop()
        if keeps and before[-3:] == ["SWAP", "COPY", "COMPARE_OP"]:
            return f"it chains comparisons, {_EAGER}; use potok.functions.between, or & between two comparisons"
        if keeps:
            word, instead = ("and", "&") if "FALSE" in name else ("or", "|")
            return f"it uses `{word}`, {_EAGER}; write `{instead}`, with parentheses, to run it natively"
        return f"it uses `if`, {_EAGER}; use potok.functions.when"
    return None


def _is_conditional(name: str) -> bool:
    return name.startswith(("POP_JUMP", "JUMP_IF"))
