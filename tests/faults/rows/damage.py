"""Bytes on the disk are not those that were written: the query stops, and says what to type."""

from __future__ import annotations

import shutil
from pathlib import Path

from potok.backends.state_url import Where
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.state.lmdb.buffered import BufferedTable
from potok.state.lmdb.environment import close_environment, open_environment
from potok.state.open import shard_path
from tests.faults.orders import Orders
from tests.faults.potok_commands import rebuild
from tests.faults.row import Proof, row
from tests.faults.scene import Scene


def half_done(orders: Orders, failpoint: str = "ledger.committed") -> int:
    """Kill the query after some batches; how many records are in."""
    orders.run(failpoint=f"{failpoint}:{orders.scene.random.randint(2, 4)}").must_be_killed()
    committed = orders.check_snapshot()
    assert 0 < committed < orders.records
    return committed


def flip(scene: Scene, path: Path, first: int, last: int) -> int:
    """Change one byte of a file between two positions; which."""
    position = scene.random.randrange(first, last)
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << scene.random.randrange(8)
    path.write_bytes(data)
    return position


def tails(data: Path, topics: list[str]) -> dict[Path, int]:
    """The segment files that go on behind their committed end, and where that is."""
    broker = EmbeddedBroker.shared(data)
    found: dict[Path, int] = {}
    for topic in topics:
        for part in broker.describe_topic(topic).partitions:
            for path in data.rglob(f"{topic}*/{part.partition}/*.segment"):
                if path.stat().st_size > part.bytes:
                    found[path] = part.bytes
    broker.close()
    return found


@row("torn-segment", "output was written, not committed, and only a part of it reached the disk")
def torn_segment(scene: Scene) -> Proof:
    orders = Orders(scene)
    half_done(orders, "log.publish.written")
    topics = [f"{orders.prefix}large", f"{orders.prefix}counts", f"{orders.query}-dead-letters"]
    torn = tails(orders.data, topics)
    assert torn, "nothing was left behind the committed ends"
    for path, end in torn.items():
        with path.open("r+b") as file:
            file.truncate(scene.random.randint(end, path.stat().st_size))
            file.seek(0, 2)
            file.write(scene.random.randbytes(scene.random.randint(0, 200)))
    orders.check_snapshot()
    orders.run().must_be_well()
    return orders.prove(f"{len(torn)} segments torn behind their committed ends: cut off by the next append")


@row("corrupt-segment", "a bit of a committed record changes in the log")
def corrupt_segment(scene: Scene) -> Proof:
    orders = Orders(scene)
    half_done(orders)
    segment = max(orders.data.rglob(f"{orders.topic}*/*/*.segment"), key=lambda path: path.stat().st_size)
    backup = scene.directory / "backup"
    shutil.copy(segment, backup)
    size = segment.stat().st_size
    position = flip(scene, segment, size * 9 // 10, size)
    said = orders.run().must_say("is damaged at byte", str(segment), "hint: restore the file from a backup")
    assert "checksum" in said.said or "header" in said.said
    shutil.copy(backup, segment)
    orders.run().must_be_well()
    return orders.prove(f"bit flipped at byte {position} of {size}: found, named, put back")


@row("corrupt-cell", "a bit of the state changes")
def corrupt_cell(scene: Scene) -> Proof:
    orders = Orders(scene)
    half_done(orders)
    table = scene.random.choice(("counts", "remainders"))
    shard = scene.random.randrange(orders.shards)
    key = _spoil(scene, shard_path(Where.of(orders.data), orders.query, shard), table)
    orders.run().must_say(f'the state of table "{table}" is damaged', "potok run PROGRAM --shadow", "potok promote")
    rebuild(orders)
    orders.run().must_be_well()
    return orders.prove(f"cell {key!r} of {table} spoilt: found by its checksum; tables rebuilt beside it")


def _spoil(scene: Scene, path: Path, table: str) -> bytes:
    environment = open_environment(path)
    trees = BufferedTable(table, environment.table)
    rows = environment.read(lambda txn: list(trees.scan(txn, b"", None)))
    key, cell = scene.random.choice(rows)
    spoilt = bytearray(cell)
    spoilt[scene.random.randrange(len(cell))] ^= 1 << scene.random.randrange(8)
    environment.write(lambda txn: trees.put_many(txn, [(key, bytes(spoilt))]))
    close_environment(path)
    return key


@row("state-lost", "the state of a shard is gone, or an older copy of it was put back")
def state_lost(scene: Scene) -> Proof:
    orders = Orders(scene)
    half_done(orders)
    shard = shard_path(Where.of(orders.data), orders.query, scene.random.randrange(orders.shards))
    older = scene.directory / "older"
    shutil.copytree(shard, older)
    half_done(orders, "ledger.committed")
    shutil.rmtree(shard)
    orders.run().must_say("is missing", "restore the lost state", "potok run PROGRAM --shadow")
    shutil.rmtree(shard, ignore_errors=True)
    shutil.copytree(older, shard)
    orders.run().must_say("ends with batch", "restore the lost state", "potok run PROGRAM --shadow")
    rebuild(orders)
    orders.run().must_be_well()
    return orders.prove("a shard without its state, and with older state, refused; tables rebuilt beside it")


@row("power-loss", "after a power loss the state is ahead of the ledger")
def power_loss(scene: Scene) -> Proof:
    orders = Orders(scene)
    half_done(orders)
    # All cells of the next batch are written, and neither its output nor its end.
    committed = half_done(orders, scene.random.choice(("ledger.before", "log.publish.synced")))
    orders.check_snapshot()
    orders.run().must_be_well()
    return orders.prove(f"cells ahead of {committed} committed records: stepped over")
