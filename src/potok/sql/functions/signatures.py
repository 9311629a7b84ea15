"""Parse signatures: `INSTR(text VARCHAR, part VARCHAR[, position INT])`."""

from __future__ import annotations

from dataclasses import dataclass

_OPENING, _CLOSING = "(<[", ")>]"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument by name and type; one followed by `...` may be repeated. A lambda has no name."""

    name: str
    type: str
    optional: bool = False
    variadic: bool = False


def arguments_of(signature: str) -> tuple[Argument, ...]:
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    found: list[Argument] = []
    for text, optional in _parts(inside):
        if text == "...":
            last = found[-1]
            found[-1] = Argument(last.name, last.type, last.optional, variadic=True)
        elif "=>" in text:
            found.append(Argument("", f"LAMBDA {text}", optional))
        else:
            name, _, type_ = text.partition(" ")
            found.append(Argument(name, type_, optional))
    return tuple(found)


def _parts(text: str) -> list[tuple[str, bool]]:
    """Split at commas, with whether each part is in brackets. `=>` does not close a bracket."""
    parts: list[tuple[str, bool]] = []
    part, depth, optional, before = "", 0, False, ""
    for sign in text:
        if sign in "[]" and depth == 0:
            if part.strip():
                parts.append((part.strip(), optional))
            part, optional = "", sign == "["
        elif sign == "," and depth == 0:
            if part.strip():
                parts.append((part.strip(), optional))
            part = ""
        else:
            depth += (sign in _OPENING) - (sign in _CLOSING and before != "=")
            part += sign
        before = sign
    return [*parts, (part.strip(), optional)] if part.strip() else parts
