"""What every rule of checking needs: the scope, the parameters of the lambdas around, and a way to check the parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from potok.sql.expressions.typed import Scope, Typed
from potok.sql.syntax import ast

Rule = Callable[[Any, "Checker", "pa.DataType | None"], Typed]
"""Checks a node; the type is the one that would be welcome, for nodes that have none by themselves."""


@dataclass(frozen=True, slots=True)
class Checker:
    scope: Scope
    rules: Mapping[type[ast.Node], Rule]
    parameters: Mapping[str, pa.DataType] = field(default_factory=dict)

    def visit(self, node: ast.Expression, wanted: pa.DataType | None = None) -> Typed:
        return self.rules[type(node)](node, self, wanted)

    def inside(self, parameters: Mapping[str, pa.DataType]) -> Checker:
        """The checker for the body of a lambda."""
        return replace(self, parameters={**self.parameters, **parameters})
