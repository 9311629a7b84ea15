"""`potok state`: what it says, and what it leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Potok
from cli.shop import HOUR, ORDERS, write_program
from operators.core.in_process import InProcess
from potok.cli.queries.program import load_topology
from potok.state.lmdb.environment import close_environment
from potok.state.open import open_store

LETTERS = "abcdefghijklmnop"


@pytest.fixture
def program(tmp_path: Path) -> str:
    return write_program(tmp_path / "programs")


@pytest.fixture
def data(tmp_path: Path, program: str) -> Path:
    """A log in which the query of the shop has run over a few orders."""
    feed(tmp_path / "data", program)
    return tmp_path / "data"


def feed(data: Path, program: str) -> None:
    with InProcess(load_topology(program), directory=data) as driver:
        for number, user in enumerate(LETTERS):
            order = {"user_id": user, "amount": ORDERS[number % 5][1], "items": []}
            driver.send("orders", order, key=user, timestamp=HOUR + number)
        driver.run()


def test_show_says_where_the_state_is_and_what_it_holds(potok: Potok, data: Path) -> None:
    (found,) = potok("state", "show", "--json").objects
    assert (found["query"], found["batch"], found["location"]) == ("shop", 1, f"file:{data}")
    assert sum(shard["tables"]["order_counts"] for shard in found["shards"]) == len(LETTERS)
    rendered = potok("state", "show", "shop")
    assert "order_counts" in rendered.out
    assert "2 shards, " in rendered.err
    assert str(data) in rendered.err


def test_what_was_backed_up_is_restored(potok: Potok, data: Path, program: str) -> None:
    copied = potok("state", "backup", "--to", "copy")
    assert copied.code == 0
    assert 'query "shop" as of batch 1 is in copy' in copied.err
    feed(data, program)
    assert potok("tables", "get", "order_counts", "a").out.strip() == "2"
    refused = potok("state", "restore", "copy")
    assert (refused.code, "--force" in refused.err) == (1, True)
    assert potok("state", "restore", "copy", "--force", "--json").objects[0]["batch"] == 1
    assert potok("tables", "get", "order_counts", "a").out.strip() == "1"


def test_a_backup_is_restored_into_a_log_that_is_not_there_yet(potok: Potok, data: Path) -> None:
    assert potok("state", "backup", "shop", "--to", "copy", "--json").objects[0]["query"] == "shop"
    assert potok("state", "restore", "copy", "--broker", "other").code == 0
    assert potok("tables", "get", "order_counts", "a", "--broker", "other").out.strip() == "1"


@pytest.mark.parametrize("url", ["redis_url", "directory_url"])
def test_the_state_moves_to_another_location_through_a_backup(
    potok: Potok, data: Path, url: str, request: pytest.FixtureRequest, cache: Path
) -> None:
    url = request.getfixturevalue(url)
    potok("state", "backup", "--to", "copy")
    moved = potok("state", "restore", "copy", "--force", "--state", url)
    assert moved.code == 0
    assert potok("tables", "get", "order_counts", "a").out.strip() == "1"
    assert potok("state", "show", "--json").objects[0]["location"] == url
    assert potok("state", "verify").code == 0
    assert not (data / "queries" / "shop" / "state").exists()


def damage(data: Path) -> bytes:
    """Flip a bit of one cell; gives its key."""
    for shard in range(2):
        store = open_store(data, "shop", shard)
        for key, cell in store.page("order_counts", limit=1):
            broken = bytearray(cell)
            broken[-1] ^= 1
            attempt = store.attempt()
            assert attempt is not None
            store.put_many(attempt, [("order_counts", [(key, bytes(broken))])])
            store.close()
            return key
        store.close()
    raise AssertionError


def test_verify_finds_nothing_where_nothing_is_wrong(potok: Potok, data: Path) -> None:
    done = potok("state", "verify")
    assert (done.code, "none damaged" in done.err) == (0, True)
    assert potok("state", "verify", "--json").objects[0]["damaged"] == []


def test_verify_names_the_damaged_cells_and_ends_with_one(potok: Potok, data: Path) -> None:
    key = damage(data)
    done = potok("state", "verify")
    assert done.code == 1
    assert key.decode() in done.out
    assert "1 damaged" in done.err
    (found,) = potok("state", "verify", "shop", "--json").objects
    assert [(cell["table"], cell["key"]) for cell in found["damaged"]] == [("order_counts", key.decode())]


def test_verify_names_an_unreadable_shard_and_checks_the_others(potok: Potok, data: Path) -> None:
    whole = potok("state", "verify", "--json").objects[0]["cells"]
    file = data / "queries" / "shop" / "state" / "0" / "data.mdb"
    close_environment(file.parent)
    file.write_bytes(file.read_bytes()[:20_000])
    done = potok("state", "verify")
    assert done.code == 1
    reported = "".join(done.err.split())
    assert f"shard0at{file.parent}:thestateat{file}isdamaged" in reported
    assert "hint:rebuildthetables" in reported
    (found,) = potok("state", "verify", "--json").objects
    assert [shard["shard"] for shard in found["damaged_shards"]] == [0]
    assert 0 < found["cells"] < whole


def test_deleted_files_are_not_reported_as_damage(potok: Potok, data: Path) -> None:
    store = open_store(data, "shop", 0)
    attempt = store.attempt()
    assert attempt is not None
    store.put_many(attempt, [("order_counts/deleted", [(b"0123456789abkey", b"")])])
    store.close()
    assert potok("state", "verify").code == 0


def test_verify_looks_into_a_backup_too(potok: Potok, data: Path) -> None:
    key = damage(data)
    potok("state", "backup", "--to", "copy")
    done = potok("state", "verify", "--backup", "copy", "--json")
    assert (done.code, [cell["key"] for cell in done.objects[0]["damaged"]]) == (1, [key.decode()])
    file = next(Path("copy").glob("*.arrow"))
    file.write_bytes(file.read_bytes()[:-100])
    broken = potok("state", "verify", "--backup", "copy")
    assert (broken.code, "is damaged" in broken.err) == (1, True)


def test_reshard_redistributes_the_state(potok: Potok, data: Path, program: str) -> None:
    done = potok("state", "reshard", program, "--shards", "5")
    assert done.code == 0
    assert "5 shards" in done.err
    assert len(potok("state", "show", "--json").objects[0]["shards"]) == 5
    assert potok("tables", "get", "order_counts", "a").out.strip() == "1"
    feed(data, program)
    assert potok("tables", "get", "order_counts", "a").out.strip() == "2"
    assert potok("state", "reshard", program, "--shards", "5", "--json").objects == [
        {"query": "shop", "before": 5, "shards": 5}
    ]


def test_a_query_that_never_ran_is_named(potok: Potok, data: Path) -> None:
    done = potok("state", "backup", "nobody", "--to", "copy")
    assert (done.code, "there are: shop" in done.err) == (1, True)
