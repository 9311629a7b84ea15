from __future__ import annotations

import pytest

from potok.dead_letters.read import Fate
from potok.dead_letters.resolved import Resolved
from potok.errors import StateError


def test_resolved_offsets_are_stored_as_ranges() -> None:
    resolved = Resolved().with_replayed([3, 1, 2, 7]).with_purged([2, 9])
    assert (resolved.replayed, resolved.purged) == ([(1, 2), (3, 4), (7, 8)], [(2, 3), (9, 10)])
    assert resolved.open(0, 10) == [(0, 1), (4, 7), (8, 9)]
    assert resolved.not_purged(0, 10) == [(0, 2), (3, 9)]
    assert [resolved.fate(offset) for offset in (0, 1, 2)] == [Fate.OPEN, Fate.REPLAYED, Fate.PURGED]


def test_resolved_offsets_survive_serialization() -> None:
    resolved = Resolved([(1, 5), (1 << 40, (1 << 40) + 3)], [(7, 8)])
    assert Resolved.of_bytes(resolved.to_bytes()) == resolved
    assert Resolved.of_bytes(Resolved().to_bytes()) == Resolved()
    assert len(Resolved().with_replayed(range(1_000_000)).to_bytes()) < 30


def test_offsets_before_the_log_start_are_dropped() -> None:
    assert Resolved([(0, 4), (6, 8)], [(4, 5)]).since(3) == Resolved([(3, 4), (6, 8)], [(4, 5)])
    assert Resolved([(0, 4)], [(4, 5)]).since(5) == Resolved()


def test_bytes_of_a_later_version_are_rejected() -> None:
    with pytest.raises(StateError, match="format 9"):
        Resolved.of_bytes(b"\x09" + Resolved().to_bytes()[1:])
