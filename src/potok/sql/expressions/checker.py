"""The context of checking: the scope, the parameters of the enclosing lambdas, and a function to check parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from potok.sql.expressions.typed import Scope, Typed
from potok.sql.syntax import ast

Rule = Callable[[Any, "Checker", "pa.DataType | None"], Typed]
"""Checks a node; the type is a preference for nodes that have no type of their own."""


@dataclass(frozen=True, slots=True)
class Checker:
    scope: Scope
    rules: Mapping[type[ast.Node], Rule]
    parameters: Mapping[str, pa.DataType] = field(default_factory=dict)

    def visit(self, node: ast.Expression, wanted: pa.DataType | None = None) -> Typed:
        return self.rules[type(node)](node, self, wanted)

    def inside(self, parameters: Mapping[str, pa.DataType]) -> Checker:
        """Return the checker for the body of a lambda."""
        return replace(self, parameters={**self.parameters, **parameters})
