"""Positions of the binary log, and what a chunk has seen."""

from __future__ import annotations

import pytest

from potok.sources.cdc.mysql.positions import Place, VisibleLog, number_of, with_gtid

SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "4c9e3dfc-9d25-11e9-8d2e-0242ac1cfd7e"


def test_files_are_ordered_by_their_number() -> None:
    assert number_of("changes.000009") < number_of("changes.000010") < number_of("changes.1000000")


@pytest.mark.parametrize(
    ("file", "pos", "seen"), [(2, 99, True), (2, 100, False), (3, 4, False), (1, 5_000, True), (2, 101, False)]
)
def test_a_chunk_of_mariadb_has_seen_what_begins_before_its_position(file: int, pos: int, seen: bool) -> None:
    assert VisibleLog((2, 100)).sees(Place(file, pos, "0-1-1")) is seen


@pytest.mark.parametrize(("gtid", "seen"), [(f"{SERVER}:5", True), (f"{SERVER}:6", False), (f"{OTHER}:1", False)])
def test_a_chunk_of_mysql_has_seen_what_was_executed_before_it(gtid: str, seen: bool) -> None:
    visible = VisibleLog((2, 100), f"{SERVER}:1-5")
    assert visible.sees(Place(1, 4, gtid)) is seen
    assert not visible.sees(Place(1, 4, None))


def test_gtids_of_mariadb_are_the_last_of_each_domain() -> None:
    assert with_gtid("", "0-7-1", is_mariadb=True) == "0-7-1"
    assert with_gtid("0-7-9,10-7-3", "2-7-1", is_mariadb=True) == "0-7-9,2-7-1,10-7-3"
    assert with_gtid("0-7-9,10-7-3", "0-8-10", is_mariadb=True) == "0-8-10,10-7-3"


def test_gtids_of_mysql_are_ranges_of_each_server() -> None:
    assert with_gtid(f"{SERVER}:1-5", f"{SERVER}:6", is_mariadb=False) == f"{SERVER}:1-6"
    assert with_gtid("", f"{SERVER}:1", is_mariadb=False) == f"{SERVER}:1"
