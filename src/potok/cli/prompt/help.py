"""`help` at the prompt: the statements and their syntax."""

from __future__ import annotations

import difflib
from typing import Final

from potok.cli.output import console

FORMS: Final = {
    "CREATE STREAM": "CREATE [OR REPLACE] [SOURCE] STREAM [IF NOT EXISTS] name (column type [KEY], ...)\n"
    "  WITH (KAFKA_TOPIC = 'topic', VALUE_FORMAT = 'JSON', ...);",
    "CREATE TABLE": "CREATE [OR REPLACE] [SOURCE] TABLE [IF NOT EXISTS] name (column type [PRIMARY KEY], ...)\n"
    "  WITH (KAFKA_TOPIC = 'topic', VALUE_FORMAT = 'JSON', ...);",
    "CREATE AS": "CREATE STREAM|TABLE name [WITH (...)] AS SELECT ... EMIT CHANGES;",
    "CREATE TYPE": "CREATE TYPE [IF NOT EXISTS] name AS type;",
    "ALTER": "ALTER STREAM|TABLE name ADD COLUMN column type, ...;",
    "DROP": "DROP STREAM|TABLE|TYPE [IF EXISTS] name [DELETE TOPIC];",
    "INSERT": "INSERT INTO name [(column, ...)] VALUES (value, ...);\nINSERT INTO name SELECT ...;",
    "SELECT": "SELECT item [AS alias], ... FROM source [alias]\n"
    "  [[INNER|LEFT|RIGHT|FULL] JOIN source [WITHIN ...] ON condition]\n"
    "  [WINDOW TUMBLING|HOPPING|SESSION (...)] [WHERE condition] [GROUP BY ...] [PARTITION BY ...] [HAVING condition]\n"
    "  [ORDER BY ...] [EMIT CHANGES|FINAL] [LIMIT n];\n"
    "Without EMIT, it reads the current tables; with EMIT, it returns rows until Ctrl-C.",
    "SHOW": "SHOW|LIST STREAMS|TABLES|[ALL] TOPICS|QUERIES|FUNCTIONS|TYPES|VARIABLES|PROPERTIES [EXTENDED];",
    "DESCRIBE": "DESCRIBE name [EXTENDED];\nDESCRIBE FUNCTION name;",
    "EXPLAIN": "EXPLAIN statement|query_id;",
    "PRINT": "PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n];",
    "TERMINATE": "TERMINATE|PAUSE|RESUME query_id|ALL;",
    "SET": "SET 'property' = 'value';\nUNSET 'property';\nfor example SET 'auto.offset.reset' = 'latest';",
    "DEFINE": "DEFINE name = 'value';\nUNDEFINE name;\nlater statements can use ${name}.",
    "RUN SCRIPT": "RUN SCRIPT 'file.sql';",
    "ASSERT": "ASSERT [NOT EXISTS] TOPIC name [WITH (PARTITIONS = n)] [TIMEOUT n SECONDS];",
}
"""Syntax by the words that `help` accepts."""

COMMANDS: Final = {
    "help [statement]": "show this help, or the syntax of a statement",
    "output json|table": "set the output format",
    "clear": "clear the screen",
    "exit": "quit; Ctrl-D does the same",
}


def print_help(about: str) -> None:
    out = console()
    wanted = about.strip().rstrip(";").upper()
    if not wanted:
        _print_overview()
        return
    found = [name for name in FORMS if name.startswith(wanted) or wanted in FORMS[name].split(maxsplit=1)[0].split("|")]
    if not found:
        found = difflib.get_close_matches(wanted, FORMS, n=1)
    if not found:
        out.print(f"no help for {wanted}; topics: {', '.join(FORMS)}", markup=False)
    for name in found:
        out.print(FORMS[name], markup=False)


def _print_overview() -> None:
    out = console()
    out.print("[bold]Statements[/] end with ;")
    for name, form in FORMS.items():
        out.print(f"  {name.ljust(14)} {form.splitlines()[0].strip()}", markup=False)
    out.print("[bold]Commands[/] of this prompt")
    for command, text in COMMANDS.items():
        out.print(f"  {command.ljust(20)} {text}", markup=False)
    out.print("[bold]Keys[/]  Tab completes, Enter after ; executes, Ctrl-C discards the input or stops a push query")
    out.print("SHOW FUNCTIONS; and DESCRIBE FUNCTION name; describe functions.", markup=False)
