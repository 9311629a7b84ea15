"""Passwords in URLs of JDBC that do not have the form of other URLs."""

from __future__ import annotations

import re

from potok.redact import is_secret

_PROPERTY = re.compile(r";\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)")
_ORACLE_LOGIN = re.compile(r"jdbc:oracle:\w+:[^/@]*/(.+)@")


def secrets_of(url: str) -> list[str]:
    """Return the secrets of a URL whose options come after semicolons, or with the login of Oracle."""
    found = [value for name, value in _PROPERTY.findall(url) if is_secret(name)]
    found += [value[1:-1].replace("}}", "}") for value in found if value.startswith("{")]
    login = _ORACLE_LOGIN.match(url)
    return found if login is None else [*found, login[1], login[1].strip('"')]
