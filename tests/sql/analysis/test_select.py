"""One analysis of a SELECT serves all physical forms."""

from __future__ import annotations

import pytest

from potok.sql.analysis.form import Form
from potok.sql.analysis.select import Analysis, analyse
from potok.sql.catalog import Catalog, Source, SourceColumn
from potok.sql.errors import Refused, SqlTypeError
from potok.sql.expressions.typed import columns_of
from potok.sql.syntax import ast
from potok.sql.types import BIGINT, INT, VARCHAR
from sql.syntax.one_statement import parse_statement

ORDERS = Source(
    "ORDERS",
    False,
    (SourceColumn("ID", VARCHAR, is_key=True), SourceColumn("USER_ID", VARCHAR), SourceColumn("AMOUNT", INT)),
    "orders",
    "kafka",
    "sql_json",
)
USERS = Source(
    "USERS",
    True,
    (SourceColumn("ID", VARCHAR, is_key=True), SourceColumn("NAME", VARCHAR)),
    "users",
    "kafka",
    "sql_json",
    table_of="CTAS_USERS",
)
DOTTED = Source("A.B", False, (SourceColumn("C", INT),), "dotted", "none", "sql_json")
LONGER = Source("A", False, (SourceColumn("B.C", VARCHAR), SourceColumn("K", INT)), "longer", "none", "sql_json")
CATALOG = Catalog({source.name: source for source in (ORDERS, USERS, DOTTED, LONGER)})


def analysed(text: str, form: Form) -> Analysis:
    statement = parse_statement(text)
    assert isinstance(statement, ast.Query)
    return analyse(CATALOG, statement.query, form)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, amount + 1 AS more FROM orders WHERE amount > 2",
        "SELECT user_id, SUM(amount) AS total FROM orders GROUP BY user_id HAVING COUNT(*) > 1",
        "SELECT o.id, u.name FROM orders o JOIN users u ON o.user_id = u.id WHERE o.ROWTIME > 0",
    ],
)
def test_all_forms_of_a_query_compute_the_same_expressions(text: str) -> None:
    persistent, push, pull = (analysed(text, form) for form in Form)
    assert persistent.projected == push.projected == pull.projected
    assert persistent.where == push.where == pull.where
    assert persistent.having == push.having == pull.having
    assert [item.name for item in persistent.items] == [item.name for item in pull.items]


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT id FROM orders WHERE SUM(amount) > 1", "SUM(AMOUNT) is not allowed in WHERE"),
        ("SELECT id FROM orders HAVING amount > 1", "HAVING needs GROUP BY"),
        ("SELECT u.id FROM orders u JOIN users u ON u.id = u.id", "two sources are called U"),
        ("SELECT o.id FROM orders o JOIN users u ON o.id = o.user_id", "both sides of the condition"),
        ("SELECT amount, COUNT(*) AS n FROM orders GROUP BY user_id", "AMOUNT is neither grouped by nor aggregated"),
        ("SELECT id FROM orders GROUP BY id, id", "ID occurs twice in GROUP BY"),
    ],
)
def test_all_query_forms_report_an_error_with_the_same_message(text: str, why: str, form: Form) -> None:
    with pytest.raises(Refused, match=why.replace("(", r"\(").replace(")", r"\)")):
        analysed(text, form)


@pytest.mark.parametrize(
    ("text", "refused_by"),
    [
        ("SELECT id FROM orders ORDER BY id", {Form.PERSISTENT, Form.PUSH}),
        ("SELECT id FROM orders LIMIT 1", {Form.PERSISTENT}),
        ("SELECT * FROM orders PARTITION BY user_id", {Form.PULL}),
        ("SELECT COUNT(*) AS n FROM orders", {Form.PERSISTENT, Form.PUSH}),
        ("SELECT user_id FROM orders GROUP BY user_id", {Form.PERSISTENT, Form.PUSH}),
        ("SELECT * FROM users AS OF '2024-01-01'", {Form.PERSISTENT, Form.PUSH}),
    ],
)
def test_a_form_refuses_the_clauses_that_it_cannot_execute(text: str, refused_by: set[Form]) -> None:
    found = set()
    for form in Form:
        try:
            analysed(text, form)
        except Refused:
            found.add(form)
    assert found == refused_by


def test_names_with_dots_in_them_are_not_confused() -> None:
    text = "SELECT * FROM `A.B` x JOIN `A` y WITHIN 1 HOUR ON x.c = y.k"
    assert [item.name for item in analysed(text, Form.PUSH).items] == ["X_C", "Y_B.C", "Y_K"]
    found = analysed("SELECT * FROM `A.B` JOIN `A` WITHIN 1 HOUR ON `A.B`.c = `A`.k", Form.PUSH)
    slots = [slot for typed in found.projected for slot in columns_of(typed)]
    assert len(set(slots)) == len(slots) == 3


def test_the_key_of_a_join_that_no_column_equals_has_a_name_in_queries_that_keep_running() -> None:
    text = "SELECT * FROM users a FULL OUTER JOIN users b ON a.id = b.id"
    assert analysed(text, Form.PUSH).items[0].name == "ROWKEY"
    assert [item.name for item in analysed(text, Form.PULL).items] == ["A_ID", "A_NAME", "B_ID", "B_NAME"]


def test_a_number_is_widened_to_join_at_once_and_refused_to_join_records() -> None:
    counts = Source(
        "COUNTS", True, (SourceColumn("N", BIGINT, is_key=True),), "counts", "kafka", "sql_json", table_of="Q"
    )
    statement = parse_statement("SELECT o.id FROM orders o JOIN counts c ON o.amount = c.n")
    assert isinstance(statement, ast.Query)
    catalog = CATALOG.with_source(counts)
    join = analyse(catalog, statement.query, Form.PULL).joins[0]
    assert [typed.type for typed in (*join.left, *join.right)] == [BIGINT, BIGINT]
    with pytest.raises(SqlTypeError, match="cannot join INTEGER with BIGINT"):
        analyse(catalog, statement.query, Form.PUSH)
