"""The short way to a row gives what the long way gives."""

from __future__ import annotations

import httpx
import orjson
import pytest

from potok.serving.near_rows import Far, NearRows
from potok.serving.table_reads import EVERY, TableReads
from serving.conftest import sell
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
def test_a_row_is_the_same_by_both_ways(sales: Play, reads: TableReads, table: str, key: str) -> None:
    near = NearRows(sales.database, reads)
    _, row = near.find(table, key)
    near.release()
    assert ([] if row is None else [orjson.loads(row)]) == _as_json(reads.by_key(table, key, EVERY))


@pytest.mark.parametrize(("table", "key"), [("by_item", "7"), ("by_item", " 9 "), ("by_both", '["ann",8]')])
def test_keys_of_any_type_are_found(sales: Play, reads: TableReads, table: str, key: str) -> None:
    near = NearRows(sales.database, reads)
    _, row = near.find(table, key)
    near.release()
    assert row is not None
    assert [orjson.loads(row)] == _as_json(reads.by_key(table, key, EVERY))


@pytest.mark.parametrize(
    ("table", "key"), [("nothing", "x"), ("sales", "ann"), ("by_item", "seven"), ("by_both", "[1]"), ("hourly", "ann")]
)
def test_what_is_wrong_or_has_windows_is_left_to_the_longer_way(shop: Play, sales: Play, table: str, key: str) -> None:
    near = NearRows(sales.database, TableReads(sales.database, 100))
    with pytest.raises(Far):
        near.find(table, key)


def test_a_table_that_has_no_ledger_yet_is_left_to_the_longer_way(shop: Play) -> None:
    near = NearRows(shop.database, TableReads(shop.database, 100))
    with pytest.raises(Far):
        near.find("totals", "ann")
    sell(shop, ("o1", "ann", 1.0))
    assert near.find("totals", "ann")[1] == b'{"USER_ID":"ann","N":1,"TOTAL":1.0}'
    near.release()


def test_a_table_that_was_dropped_and_made_again_shows_its_own_rows(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.0))
    assert client.get("/tables/totals/ann").json()["TOTAL"] == 2.0
    shop.leave("CTAS_TOTALS")
    shop.do("DROP TABLE totals DELETE TOPIC;")
    assert client.get("/tables/totals/ann").status_code == 404
    shop.do("CREATE TABLE totals AS SELECT user_id, MAX(amount) AS top FROM orders GROUP BY user_id;")
    sell(shop, ("o2", "ann", 5.0))
    assert client.get("/tables/totals/ann").json()["TOP"] == 5.0


def _as_json(rows: list[dict[str, object]]) -> list[object]:
    from potok.serving.json_rows import dump

    return [orjson.loads(dump(row)) for row in rows]
