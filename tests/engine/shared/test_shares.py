"""What a batch consists of survives the way through Spark's log and through the roll."""

from __future__ import annotations

import json
from pathlib import Path

from potok.engine.shared.roll import Listed, Roll
from potok.engine.shared.shares import Share, Shares, last_shares, unfinished
from potok.state.entry import Entry
from potok.state.offsets import Offsets

SHARE = Share({"orders": {0: 5, 1: 7}}, Offsets({"orders": {0: 9, 1: 7}}, 3, frozenset({("orders", 1)}), 99))


def test_shares_are_read_as_they_were_written() -> None:
    shares = Shares(17, {"one": SHARE}, ("two",))
    found = Shares.of_json(json.loads(json.dumps(shares.to_json())))
    assert found == shares
    assert found.shares["one"].end.at_ms == 99


def test_a_roll_is_read_as_it_was_written() -> None:
    roll = Roll({"one": Listed(("orders",), {"totals": frozenset({"orders"})})}, {"two": SHARE})
    assert Roll.of_bytes(roll.to_bytes()) == roll
    assert Roll.of_bytes(None) == Roll()


def test_a_share_fits_a_ledger_that_stands_at_its_beginning_in_the_topics_that_both_know() -> None:
    assert SHARE.fits(Entry(offsets=Offsets({"orders": {0: 5, 1: 7}, "added": {0: 3}})))
    assert not SHARE.fits(Entry(offsets=Offsets({"orders": {0: 9, 1: 7}})))


def test_the_last_shares_are_those_of_the_highest_number(tmp_path: Path) -> None:
    assert last_shares(tmp_path) == Shares()
    for number, at_ms in ((9, 1), (10, 2)):
        write(tmp_path / "offsets" / str(number), json.dumps(Shares(at_ms).to_json()))
    write(tmp_path / "offsets" / ".10.crc", "")
    assert last_shares(tmp_path).at_ms == 2


def test_a_batch_is_unfinished_until_spark_says_otherwise(tmp_path: Path) -> None:
    assert unfinished(tmp_path) is None
    write(tmp_path / "offsets" / "4", json.dumps(SHARE.end.to_json()))
    write(tmp_path / "commits" / "3", "")
    assert unfinished(tmp_path) == SHARE.end
    write(tmp_path / "commits" / "4", "")
    assert unfinished(tmp_path) is None


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("v1\n{}\n" + text)
