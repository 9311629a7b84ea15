"""Render docstrings as Markdown."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

LINE = 120
_SECTION = re.compile(r"^(Args|Returns|Raises):\n", re.MULTILINE)
_ARGUMENT = re.compile(r"^    (\w+): ", re.MULTILINE)
_PROMPT = re.compile(r"^(?:>>> |\.\.\. ?|>>>$)")


def description(documented: Any) -> str:
    """Return the text of a docstring without its examples and arguments."""
    text = _SECTION.split(inspect.getdoc(documented) or "")[0]
    blocks = re.split(r"\n\s*\n", text)
    prose = [block for block in blocks if block.strip() and not _PROMPT.match(block.lstrip())]
    return "\n\n".join(_joined(block) for block in prose)


def example(documented: Any) -> str:
    """Return the example of a docstring as code; empty if it has none."""
    lines = [line for line in (inspect.getdoc(documented) or "").splitlines() if _PROMPT.match(line)]
    return "\n".join(_PROMPT.sub("", line) for line in lines)


def arguments(documented: Any) -> str:
    """Return the arguments of a docstring as a list; empty if it has none."""
    parts = _SECTION.split(inspect.getdoc(documented) or "")
    if "Args" not in parts:
        return ""
    pairs = _ARGUMENT.split(parts[parts.index("Args") + 1])[1:]
    return "\n".join(
        f"- `{name}`: {' '.join(meaning.split())}" for name, meaning in zip(pairs[::2], pairs[1::2], strict=True)
    )


def signature(name: str, function: Any) -> str:
    """Return a call with the names and the defaults of the parameters, without types."""
    parts: list[str] = []
    keyword_only = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls") and not parts:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
            parts.append(f"*{parameter.name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}")
        elif parameter.default is parameter.empty:
            parts.append(parameter.name)
        else:
            parts.append(f"{parameter.name}={_default(parameter.default)}")
    return _wrapped(name, parts)


def _wrapped(name: str, parts: list[str]) -> str:
    """Return a call as the formatter writes it, which also formats the code of Markdown files."""
    listed = ", ".join(parts)
    if len(call := f"{name}({listed})") <= LINE:
        return call
    if len(listed) + 4 <= LINE:
        return f"{name}(\n    {listed}\n)"
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), ")"])


def _default(value: Any) -> str:
    if inspect.isclass(value):
        return value.__name__
    if isinstance(value, str):
        return json.dumps(str(value))
    if hasattr(value, "total_seconds"):
        return f'"{value.days} days"'
    return repr(value)


def _joined(block: str) -> str:
    if block.lstrip().startswith(("- ", "* ", "    ")):
        return block
    return " ".join(block.split())
