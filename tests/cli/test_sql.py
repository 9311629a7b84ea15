"""`potok sql` without Spark: what is defined, inserted, looked at, printed, checked."""

from __future__ import annotations

from pathlib import Path

import pytest

ORDERS = "CREATE STREAM orders (id VARCHAR KEY, n INT) WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');"


def test_a_statement_on_the_command_line_needs_no_semicolon(potok) -> None:
    done = potok("sql", "-e", ORDERS.rstrip(";"))
    assert (done.code, done.out) == (0, "")
    assert "Stream created" in done.err


def test_results_are_drawn_as_tables(potok) -> None:
    rendered = potok("sql", "-e", f"{ORDERS} DESCRIBE orders;").out
    assert rendered.splitlines() == [
        "Name : ORDERS",
        "┌───────┬─────────┬─────┐",
        "│ Field │ Type    │ Key │",
        "├───────┼─────────┼─────┤",
        "│ ID    │ VARCHAR │ KEY │",
        "│ N     │ INTEGER │     │",
        "└───────┴─────────┴─────┘",
    ]


def test_with_json_each_line_is_a_result(potok) -> None:
    created, listed = potok("sql", "--json", "-e", f"{ORDERS} SHOW STREAMS;").objects
    assert created["message"] == "Stream created"
    assert created["command_id"] == "stream/ORDERS/create"
    assert [row["Stream Name"] for row in listed["rows"]] == ["ORDERS"]
    assert listed["columns"][0] == {"name": "Stream Name", "type": "VARCHAR", "key": False}


def test_what_was_defined_is_there_the_next_time(potok) -> None:
    potok("sql", "-e", ORDERS)
    (listed,) = potok("sql", "--json", "-e", "SHOW STREAMS").objects
    assert len(listed["rows"]) == 1


def test_a_file_is_run_to_its_first_error(potok, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(f"{ORDERS}\nDROP STREAM\n  ordres;\nSHOW STREAMS;\n")
    done = potok("sql", "-f", "a.sql")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-5:] == [
        "error: there is no stream or table ORDRES",
        "  at a.sql:2:1",
        "  DROP STREAM",
        "  ^^^^^^^^^^^",
        "  hint: did you mean ORDERS?",
    ]


def test_what_is_piped_in_is_run(potok) -> None:
    done = potok("sql", stdin=ORDERS)
    assert (done.code, "Stream created" in done.err) == (0, True)


def test_records_are_inserted_and_printed(potok) -> None:
    text = f"{ORDERS} INSERT INTO orders VALUES ('a', 1); PRINT orders FROM BEGINNING LIMIT 1;"
    done = potok("sql", "-e", text)
    assert 'key: a, value: {"N":1}' in done.out


def test_variables_may_be_given_on_the_command_line(potok) -> None:
    potok("sql", "-e", ORDERS)
    assert potok("sql", "-d", "s=orders", "-e", "DROP STREAM ${s}").code == 0
    assert potok("sql", "-d", "nonsense", "-e", "SHOW STREAMS").code == 2


def test_a_script_that_is_not_there_is_named(potok) -> None:
    done = potok("sql", "-f", "nowhere.sql")
    assert (done.code, "cannot read nowhere.sql" in done.err) == (1, True)


def test_check_reports_all_errors_and_executes_nothing(potok, tmp_path: Path) -> None:
    script = f"{ORDERS}\nSELEC 1;\nSELECT m FROM orders EMIT CHANGES;\nDROP STREAM x;\nSHOW STREAMS"
    (tmp_path / "a.sql").write_text(script)
    done = potok("sql", "--check", "a.sql", "--json")
    assert done.code == 1
    assert [(reported["line"], reported["column"], reported["error"]) for reported in done.objects] == [
        (2, 1, "SqlSyntaxError"),
        (3, 8, "UnknownName"),
        (4, 1, "UnknownName"),
        (5, 13, "SqlSyntaxError"),
    ]
    assert not (tmp_path / "data").exists()
    rendered = potok("sql", "--check", "a.sql").err
    assert "  at a.sql:3:8\n  SELECT m FROM orders EMIT CHANGES;\n         ^\n" in rendered


def test_check_knows_what_is_defined_already(potok, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT n FROM orders EMIT CHANGES;")
    assert potok("sql", "--check", "a.sql").code == 1
    potok("sql", "-e", ORDERS)
    done = potok("sql", "--check", "a.sql")
    assert (done.code, "no errors" in done.err) == (0, True)


def test_check_of_a_script_that_was_run_finds_nothing_wrong(potok, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(f"{ORDERS}\nCREATE TYPE money AS INT;\nSELECT n FROM orders EMIT CHANGES;")
    potok("sql", "-e", f"{ORDERS} CREATE TYPE money AS INT;")
    assert potok("sql", "--check", "a.sql").code == 0


def test_check_reports_an_invalid_statement_and_not_its_dependents(potok, tmp_path: Path) -> None:
    wrong = ORDERS.replace("JSON", "JSN")
    (tmp_path / "a.sql").write_text(f"{wrong}\nCREATE STREAM b AS SELECT * FROM orders;\nSELECT * FROM b EMIT CHANGES;")
    (reported,) = potok("sql", "--check", "a.sql", "--json").objects
    assert (reported["message"], reported["line"], reported["column"]) == (
        "there is no format JSN",
        1,
        ORDERS.index("'JSON'") + 1,
    )


def test_check_cannot_be_combined_with_a_server(potok, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("")
    assert potok("sql", "--check", "a.sql", "--server", "http://127.0.0.1:1").code == 2


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("'\x1b[31mred'", r"\x1b[31mred"),
        ("'[bold]not markup[/]'", "[bold]not markup[/]"),
        ("'two\nlines'", r"two\nlines"),
    ],
)
def test_no_value_can_steer_the_terminal(potok, text: str, rendered: str) -> None:
    done = potok("sql", "-e", f"DEFINE x = {text}; SHOW VARIABLES;")
    assert rendered in done.out
    assert "\x1b" not in done.out + done.err


def test_a_server_that_is_not_there_is_an_error_with_a_hint(potok) -> None:
    done = potok("sql", "--server", "http://127.0.0.1:1", "-e", "SHOW STREAMS")
    assert done.code == 1
    assert "no answer from http://127.0.0.1:1" in done.err
    assert "potok serve" in done.err


def test_functions_of_a_file_are_known_to_statements(potok, tmp_path: Path) -> None:
    code = "import potok\n\n\n@potok.function\ndef squared_up(n: int) -> int:\n    return n * n\n"
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "a.sql").write_text(f"{ORDERS} CREATE STREAM s AS SELECT id, SQUARED_UP(n) AS m FROM orders;")
    assert "there is no function SQUARED_UP" in potok("sql", "--check", "a.sql").err
    assert potok("sql", "--functions", "mine.py", "--check", "a.sql").code == 0
    refused = potok("sql", "--functions", "mine.py", "--server", "http://localhost:1", "-e", "SHOW STREAMS")
    assert (refused.code, "potok serve --functions" in refused.err) == (2, True)
