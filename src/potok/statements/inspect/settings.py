"""SHOW VARIABLES and SHOW PROPERTIES, SET and UNSET."""

from __future__ import annotations

from collections.abc import Mapping

from potok.redact import MASK, is_secret
from potok.settings import Settings
from potok.sql.properties import canonical, check_property
from potok.sql.syntax import ast
from potok.statements.inspect.listing import listed, texts
from potok.statements.results import Done, Row, Rows


def show_variables(variables: Mapping[str, str]) -> Rows:
    return listed("variables", texts("Variable Name", "Value"), sorted(variables.items()))


def set_property(properties: dict[str, str], statement: ast.SetProperty) -> Done:
    """Apply SET or UNSET to the properties of a session."""
    name = canonical(statement.name)
    if statement.value is None:
        properties.pop(name, None)
        return Done(f"Property '{statement.name}' unset")
    warning = check_property(statement.name, statement.value, statement.at)
    properties[name] = statement.value
    message = f"Property '{statement.name}' set to '{statement.value}'"
    return Done(message, warnings=(warning,) if warning else ())


def show_properties(settings: Settings, properties: Mapping[str, str]) -> Rows:
    """Show the session properties and the settings of the process, without passwords."""
    rows: list[Row] = [
        (name, "SESSION", "SET", MASK if is_secret(name) else value) for name, value in sorted(properties.items())
    ]
    defaults = Settings().printable()
    for name, text in settings.printable().items():
        rows.append((name, "SERVER", "" if defaults.get(name) == text else "SETTING", text))
    return listed("properties", texts("Property", "Scope", "Default override", "Effective Value"), rows)
