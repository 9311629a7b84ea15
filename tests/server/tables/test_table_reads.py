"""A row by key is the row that a scan of the table gives."""

from __future__ import annotations

import httpx
import pytest

from potok.server.errors import BadRequest
from potok.server.ksql.json_rows import dump
from potok.server.tables.table_reads import EVERY, Keys, TableReads
from server.conftest import sell
from statements.playing import Play

SCRIPT = """
CREATE STREAM sales (k VARCHAR KEY, item INT, price DOUBLE, cents BIGINT, exact DECIMAL(9, 2), big BOOLEAN, day DATE,
  label VARCHAR) WITH (KAFKA_TOPIC = 'sales', PARTITIONS = 2);
CREATE TABLE numbers AS SELECT k, COUNT(*) AS n, COUNT(price) AS priced, SUM(price) AS total, SUM(cents) AS cents,
  MIN(price) AS least, MAX(cents) AS most FROM sales GROUP BY k;
CREATE TABLE means AS SELECT k, AVG(price) AS mean FROM sales GROUP BY k;
CREATE TABLE latest AS SELECT k, LATEST_BY_OFFSET(item) AS item, LATEST_BY_OFFSET(label) AS label,
  LATEST_BY_OFFSET(big) AS big, LATEST_BY_OFFSET(exact) AS exact, LATEST_BY_OFFSET(day) AS day FROM sales GROUP BY k;
CREATE TABLE plain AS SELECT k, LATEST_BY_OFFSET(item) AS item, LATEST_BY_OFFSET(label) AS label,
  LATEST_BY_OFFSET(big) AS big, LATEST_BY_OFFSET(price) AS price FROM sales GROUP BY k;
CREATE TABLE listed AS SELECT k, COLLECT_LIST(item) AS items FROM sales GROUP BY k;
CREATE TABLE by_item AS SELECT item, COUNT(*) AS n FROM sales GROUP BY item;
CREATE TABLE by_both WITH (KEY_FORMAT = 'JSON') AS SELECT k, item, COUNT(*) AS n FROM sales GROUP BY k, item;
CREATE TABLE often AS SELECT k, COUNT(*) AS n FROM sales GROUP BY k HAVING COUNT(*) > 1;
CREATE TABLE odd AS SELECT k, COUNT(*) AS n FROM sales GROUP BY k HAVING COUNT(*) < 2;
"""
COLUMNS = "(k, item, price, cents, exact, big, day, label)"
ROWS = (
    "('ann', 7, 2.5, 250, 2.50, true, '2026-01-31', 'x')",
    "('ann', 8, -0.25, -25, 0.10, false, '2026-02-01', 'ü')",
    "('bob', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "('', 9, 1e300, 9007199254740993, 1.00, true, '1970-01-01', '')",
)


@pytest.fixture
def sales(play: Play) -> Play:
    play.do(SCRIPT)
    for row in ROWS:
        play.do(f"INSERT INTO sales {COLUMNS} VALUES {row};")
    play.run()
    return play


@pytest.fixture
def reads(sales: Play) -> TableReads:
    return TableReads(sales.database, 100)


@pytest.mark.parametrize("table", ["numbers", "means", "latest", "plain", "listed", "often", "odd"])
@pytest.mark.parametrize("key", ["ann", "bob", "", "nobody"])
def test_a_row_by_key_is_the_same_as_in_the_list_of_all_rows(reads: TableReads, table: str, key: str) -> None:
    listed = [row for row in reads.in_range(table, Keys(), EVERY, None) if row["K"] == key]
    assert dump(reads.by_key(table, key, EVERY)) == dump(listed)
    assert dump(_local(reads, table, key)) == dump(listed)


@pytest.mark.parametrize(
    ("table", "key", "columns"),
    [
        ("by_item", "7", {"ITEM": 7}),
        ("by_item", " 9 ", {"ITEM": 9}),
        ("by_both", '["ann",8]', {"K": "ann", "ITEM": 8}),
    ],
)
def test_keys_of_any_type_are_found(reads: TableReads, table: str, key: str, columns: dict[str, object]) -> None:
    listed = [row for row in reads.in_range(table, Keys(), EVERY, None) if row.items() >= columns.items()]
    assert len(listed) == 1
    assert reads.by_key(table, key, EVERY) == _local(reads, table, key) == listed


@pytest.mark.parametrize("table", ["nothing", "sales", "hourly"])
def test_what_is_not_a_table_or_has_windows_is_not_local(shop: Play, sales: Play, table: str) -> None:
    assert TableReads(sales.database, 100).local_table(table) is None


@pytest.mark.parametrize(("table", "key"), [("by_item", "seven"), ("by_both", "[1]")])
def test_a_key_that_does_not_fit_is_refused_by_both(reads: TableReads, table: str, key: str) -> None:
    with pytest.raises(BadRequest) as by_key:
        reads.by_key(table, key, EVERY)
    with pytest.raises(BadRequest) as local:
        _local(reads, table, key)
    assert local.value.message == by_key.value.message


def test_a_table_that_has_no_ledger_yet_has_no_row(shop: Play) -> None:
    reads = TableReads(shop.database, 100)
    assert _local(reads, "totals", "ann") == []
    sell(shop, ("o1", "ann", 1.0))
    assert _local(reads, "totals", "ann") == [{"USER_ID": "ann", "N": 1, "TOTAL": 1.0}]


def test_a_table_that_was_dropped_and_made_again_shows_its_own_rows(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.0))
    assert client.get("/tables/totals/ann").json()["TOTAL"] == 2.0
    shop.leave("CTAS_TOTALS")
    shop.do("DROP TABLE totals DELETE TOPIC;")
    assert client.get("/tables/totals/ann").status_code == 404
    shop.do("CREATE TABLE totals AS SELECT user_id, MAX(amount) AS top FROM orders GROUP BY user_id;")
    sell(shop, ("o2", "ann", 5.0))
    assert client.get("/tables/totals/ann").json()["TOP"] == 5.0


def _local(reads: TableReads, table: str, key: str) -> list[dict[str, object]]:
    source = reads.local_table(table)
    assert source is not None
    try:
        row = reads.local_row(source, key)
    finally:
        reads.release()
    return [] if row is None else [row]
