from __future__ import annotations

import pytest

from potok.dead_letters.read import Fate
from potok.dead_letters.resolved import Settled
from potok.errors import StateError


def test_what_is_done_with_is_kept_as_ranges() -> None:
    settled = Settled().with_replayed([3, 1, 2, 7]).with_purged([2, 9])
    assert (settled.replayed, settled.purged) == ([(1, 2), (3, 4), (7, 8)], [(2, 3), (9, 10)])
    assert settled.open(0, 10) == [(0, 1), (4, 7), (8, 9)]
    assert settled.kept(0, 10) == [(0, 2), (3, 9)]
    assert [settled.fate(offset) for offset in (0, 1, 2)] == [Fate.OPEN, Fate.REPLAYED, Fate.PURGED]


def test_it_comes_back_from_bytes_as_it_was() -> None:
    settled = Settled([(1, 5), (1 << 40, (1 << 40) + 3)], [(7, 8)])
    assert Settled.of_bytes(settled.to_bytes()) == settled
    assert Settled.of_bytes(Settled().to_bytes()) == Settled()
    assert len(Settled().with_replayed(range(1_000_000)).to_bytes()) < 30


def test_what_lies_before_the_log_is_forgotten() -> None:
    assert Settled([(0, 4), (6, 8)], [(4, 5)]).since(3) == Settled([(3, 4), (6, 8)], [(4, 5)])
    assert Settled([(0, 4)], [(4, 5)]).since(5) == Settled()


def test_bytes_of_a_later_version_are_refused() -> None:
    with pytest.raises(StateError, match="format 9"):
        Settled.of_bytes(b"\x09" + Settled().to_bytes()[1:])
