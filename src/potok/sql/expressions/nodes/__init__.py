"""The nodes of checked expressions. Each prints as SQL; computation is separate."""

from potok.sql.expressions.nodes.calls import FunctionCall, LambdaOf, Parameter
from potok.sql.expressions.nodes.conditions import Choice, Compare, Listed, Logic, Matches, Not, NullTest, Ranged
from potok.sql.expressions.nodes.constants import TRUE, Constant, null, text
from potok.sql.expressions.nodes.containers import Field, Item, Lookup, MakeArray, MakeMap, MakeStruct
from potok.sql.expressions.nodes.numbers import Arithmetic, CastTo, Negate

__all__ = [
    "TRUE",
    "Arithmetic",
    "CastTo",
    "Choice",
    "Compare",
    "Constant",
    "Field",
    "FunctionCall",
    "Item",
    "LambdaOf",
    "Listed",
    "Logic",
    "Lookup",
    "MakeArray",
    "MakeMap",
    "MakeStruct",
    "Matches",
    "Negate",
    "Not",
    "NullTest",
    "Parameter",
    "Ranged",
    "null",
    "text",
]
