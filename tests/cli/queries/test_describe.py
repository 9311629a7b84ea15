from __future__ import annotations

from pathlib import Path

from cli.shop import leave_a_run, write_program
from potok.topology.describe import describe


def test_a_program_is_described_as_a_tree(potok, tmp_path: Path) -> None:
    lines = potok("describe", write_program(tmp_path)).out.splitlines()
    assert lines[0] == "topology shop"
    assert lines[1].startswith("  stream_source orders: value user_id string")
    assert "    -> select_key orders.group_by" in lines
    assert "      -> aggregate hourly_totals: sum, tumbling 1h, grace 0ms" in lines
    assert lines[-1] == "  dead letters: topic shop-dead-letters"


def test_a_query_that_ran_is_described_without_its_program(potok, tmp_path: Path) -> None:
    program = write_program(tmp_path / "program")
    described = potok("describe", program).out
    leave_a_run(tmp_path / "data", program)
    assert potok("describe", "shop").out == described
    assert potok("describe", "shop", "--json").objects == potok("describe", program, "--json").objects


def test_text_and_drawing_are_those_of_the_library(potok, tmp_path: Path) -> None:
    topology = leave_a_run(tmp_path / "data", write_program(tmp_path))
    assert potok("describe", "shop").out == f"{describe(topology)}\n"
    assert potok("describe", "shop", "--mermaid").out == f"{describe(topology, 'mermaid')}\n"


def test_what_two_steps_feed_is_followed_once(potok, tmp_path: Path) -> None:
    text = (
        "from potok import StreamsBuilder\nbuilder = StreamsBuilder('x')\n"
        "builder.stream('a').merge(builder.stream('b')).to('c')\n"
    )
    lines = potok("describe", write_program(tmp_path, text)).out.splitlines()
    assert sum("-> sink" in line for line in lines) == 1
    assert sum("(see above)" in line for line in lines) == 1


def test_as_mermaid(potok, tmp_path: Path) -> None:
    lines = potok("describe", write_program(tmp_path), "--mermaid").out.splitlines()
    assert lines[0] == "flowchart LR"
    assert '    n0(["orders<br/><i>stream_source</i>"])' in lines
    assert "    n0 --> n1" in lines


def test_what_is_neither_query_nor_program_is_named(potok, tmp_path: Path) -> None:
    leave_a_run(tmp_path / "data", write_program(tmp_path / "program"))
    result = potok("describe", "shopp")
    assert result.code == 1
    assert 'there is no query, file or module "shopp"' in result.err
    assert "known queries: shop" in result.err


def test_a_file_is_described_without_opening_a_log(potok, tmp_path: Path) -> None:
    assert potok("describe", write_program(tmp_path / "program")).code == 0
    assert not (tmp_path / "data").exists()
