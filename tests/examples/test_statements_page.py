"""`docs/reference/sql-statements.md`: every statement has a grammar and an example that is parsed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.sql.syntax.statements import GRAMMARS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sql-statements.md"


def examples() -> list[ast.Parsed]:
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [parsed for block in blocks for parsed in parse_script(block)]


def test_every_kind_of_statement_has_an_example() -> None:
    assert {type(parsed.statement) for parsed in examples()} == set(get_args(ast.Statement))


def test_every_first_word_of_a_statement_is_in_a_grammar() -> None:
    grammars = "\n".join(re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    assert {word for word in GRAMMARS if not re.search(rf"\b{word}\b", grammars)} == set()
