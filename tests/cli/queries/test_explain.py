from __future__ import annotations

import io
import re
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from cli.shop import write_program
from potok.cli.output import print_paragraph
from potok.cli.queries.explain import ORDER, short_type

FOLD = """
from potok import StreamsBuilder

builder = StreamsBuilder("folds")
orders = builder.stream("orders", value="user_id string, amount double, note string")
by_user = orders.group_by(lambda v: v["user_id"])
by_user.reduce(lambda one, other: one, name="first")
by_user.avg("amount", name="average")
"""


GUARANTEES = """
from potok import StreamsBuilder

builder = StreamsBuilder("shop")
orders = builder.stream("orders")
orders.to("audit", guarantee="at_least_once")
orders.to("copies")
orders.to_http("http://localhost/orders", guarantee="at_most_once")
"""


@pytest.fixture
def steps(potok, tmp_path: Path):
    return {step["name"]: step for step in potok("explain", write_program(tmp_path), "--json").objects}


def test_a_traced_step_is_native_with_its_expression(steps) -> None:
    key = steps["orders.group_by"]
    assert (key["runs"], key["expressions"], key["reason"]) == ("native", ["value.user_id"], "")
    assert (steps["hourly_totals"]["runs"], steps["hourly_totals"]["expressions"]) == ("native", ["sum(value.amount)"])


def test_a_step_that_runs_as_python_says_why(steps) -> None:
    assert (steps["orders.filter"]["runs"], steps["orders.filter"]["reason"]) == ("python", "it imports a module")


def test_levels_and_shuffles_are_marked(steps) -> None:
    moves = {name: (step["level"], step["shuffle"]) for name, step in steps.items()}
    assert (moves["orders"], moves["orders.group_by"]) == ((0, False), (0, False))
    assert (moves["order_counts"], moves["hourly_totals"]) == ((1, True), (1, True))


def test_types_are_described(steps) -> None:
    assert (steps["order_counts"]["key"], steps["order_counts"]["value"]) == ("string", "int64")
    assert steps["orders.filter.map_values"]["value"] == "dynamic"


def paragraphs(text: str) -> dict[str, list[str]]:
    """The lines below each step."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith(" "):
            found[next(reversed(found))].append(line.strip())
        else:
            found[line] = []
    return found


def test_every_step_is_shown_for_people(potok, tmp_path: Path) -> None:
    result = potok("explain", write_program(tmp_path))
    assert paragraphs(result.out)["hourly_totals"] == [
        "aggregate, native, level 1 (shuffle)",
        "key {key, start, end}, value double",
        "sum(value.amount)",
    ]
    assert result.err.strip().endswith("steps run natively; a batch takes 1 shuffle")


def test_a_terminal_of_80_columns_is_wide_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), width=80, force_terminal=True, soft_wrap=True, highlight=False)
    monkeypatch.setattr("potok.cli.output.console", lambda: screen)
    print_paragraph("orders", ["key string, value {" + ", ".join(f"field_{n}" for n in range(20)) + "}", "short"])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", screen.file.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "orders"
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 4, 4, 2]


def test_what_depends_on_order_is_marked(potok, tmp_path: Path) -> None:
    program = write_program(tmp_path, FOLD)
    steps = {step["name"]: step for step in potok("explain", program, "--json").objects}
    assert (steps["first"]["order_dependent"], steps["average"]["order_dependent"]) == (True, False)
    assert ORDER in paragraphs(potok("explain", program).out)["first"][-1]


def test_unread_fields_are_not_decoded(potok, tmp_path: Path) -> None:
    program = write_program(tmp_path, FOLD.replace('by_user.reduce(lambda one, other: one, name="first")\n', ""))
    assert potok("explain", program, "--json").objects[0]["fields"] == ["amount", "user_id"]
    assert "decodes only amount, user_id" in potok("explain", program).out


def test_a_guarantee_other_than_the_default_is_described(potok, tmp_path: Path) -> None:
    program = write_program(tmp_path, GUARANTEES)
    rendered = paragraphs(potok("explain", program).out)
    assert rendered["orders.to.audit"][-1] == "at_least_once"
    assert "exactly_once" not in "".join(rendered["orders.to.copies"])
    assert [step["guarantee"] for step in potok("explain", program, "--json").objects] == [
        None,
        "at_least_once",
        "exactly_once",
        "at_most_once",
    ]


@pytest.mark.parametrize(
    ("type_", "rendered"),
    [
        (None, "dynamic"),
        (pa.int64(), "int64"),
        (pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]), "{a, b}"),
        (pa.list_(pa.struct([("a", pa.int64())])), "list of {a}"),
    ],
)
def test_a_type_is_described_briefly(type_: pa.DataType | None, rendered: str) -> None:
    assert short_type(type_) == rendered


PATTERNS = """
from potok import StreamsBuilder
from potok.patterns import cep

builder = StreamsBuilder("shop")
orders = builder.stream("orders").group_by_key()
paid = cep.event("order").followed_by(cep.event("paid"))
orders.match(paid, name="open").to("open")
orders.match(paid.within("1 h"), name="closed").to("closed")
"""


def test_a_pattern_that_can_stay_open_for_ever_is_reported(potok, tmp_path: Path) -> None:
    program = tmp_path / "patterns.py"
    program.write_text(PATTERNS)
    out = potok("explain", str(program)).out
    assert out.count("a match can stay open forever: add within") == 1
    assert "(order .. paid) within 1h, no_skip" in out
