from __future__ import annotations

import pytest

from potok.sql.errors import SourceLocation, SqlSyntaxError
from potok.sql.syntax.lexer.tokens import Source, scan


def test_a_lone_surrogate_is_refused_with_its_position_and_can_be_printed() -> None:
    with pytest.raises(SqlSyntaxError, match=r"U\+D800 is half of a character") as raised:
        scan(Source("SELECT\n '\ud800';"))
    assert raised.value.location == SourceLocation(2, 3)
    assert str(raised.value.in_text("SELECT\n '\ud800';")).encode()
