"""`${name}` in statements."""

from __future__ import annotations

import pytest

from potok.sql.errors import SqlSyntaxError, UnknownName
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from sql.syntax.one_statement import parse_statement


def only(script: str, variables: dict[str, str]) -> ast.Parsed:
    (parsed,) = parse_script(script, variables)
    return parsed


def test_a_variable_can_replace_a_name_a_value_or_part_of_a_text() -> None:
    parsed = only(
        "CREATE STREAM ${name} (${column} INT) WITH (KAFKA_TOPIC='${env}-orders', PARTITIONS=${n});",
        {"name": "orders", "column": "`Id`", "env": "test", "n": "3"},
    )
    assert parsed.text == "CREATE STREAM orders (`Id` INT) WITH (KAFKA_TOPIC='test-orders', PARTITIONS=3);"
    assert parsed.statement == parse_statement(parsed.text)


@pytest.mark.parametrize(
    ("value", "meaning"),
    [("3", 3), ("-3", -3), ("'x'", "x"), ("true", True), ("NULL", None), (" 5 ", 5)],
)
def test_a_value_may_be_a_number_a_text_with_its_quotes_or_a_constant(value: str, meaning: object) -> None:
    statement = only("INSERT INTO t VALUES (${v});", {"v": value}).statement
    assert isinstance(statement, ast.InsertValues)
    assert statement.values == (ast.Literal(meaning, at=statement.at),)  # type: ignore[arg-type]


def test_define_counts_from_the_next_statement_on_and_undefine_ends_it() -> None:
    script = "DEFINE Env = 'a'; PRINT '${env}'; DEFINE env = '${ENV}b'; PRINT '${env}'; UNDEFINE ENV; PRINT '${env}';"
    with pytest.raises(UnknownName):
        parse_script(script)
    parsed = parse_script(script.rsplit("PRINT", 1)[0])
    assert [part.statement.topic for part in parsed if isinstance(part.statement, ast.Print)] == ["a", "ab"]


def test_a_value_can_never_end_a_text_or_a_statement() -> None:
    parsed = only("PRINT '${x}';", {"x": "a'; DROP STREAM s; --"})
    assert isinstance(parsed.statement, ast.Print)
    assert parsed.statement.topic == "a'; DROP STREAM s; --"
    assert parse_statement(parsed.text) == parsed.statement


@pytest.mark.parametrize("value", ["a; DROP STREAM s", "a b", "", "a.b", "1 + 2", "'open", "${y}", "--"])
def test_a_value_that_is_more_than_one_name_or_value_is_refused(value: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_script("DROP STREAM ${x};", {"x": value, "y": "z"})


def test_a_keyword_out_of_a_variable_is_a_name() -> None:
    parsed = only("DROP STREAM ${x};", {"x": "select"})
    assert parsed.statement == parse_statement("DROP STREAM `SELECT`") == parse_statement(parsed.text)


def test_a_doubled_dollar_is_the_text_itself() -> None:
    parsed = only("PRINT '$${x}${x}';", {"x": "1"})
    assert isinstance(parsed.statement, ast.Print)
    assert parsed.statement.topic == "${x}1"
    assert parse_statement(parsed.text) == parsed.statement


def test_a_variable_in_a_comment_need_not_exist() -> None:
    assert len(parse_script("SHOW TABLES; -- ${x}\n/* ${y} */")) == 1


def test_the_nearest_variable_is_suggested() -> None:
    with pytest.raises(UnknownName, match=r"did you mean topic\?"):
        parse_script("DROP STREAM ${topc};", {"topic": "x"})
