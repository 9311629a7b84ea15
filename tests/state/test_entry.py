"""Entries of the ledger."""

from __future__ import annotations

import json

import pytest

from potok.errors import StateError
from potok.state.entry import Entry, metadata_key_of
from potok.state.fence import Attempt
from potok.state.offsets import Offsets

FULL = Entry(
    epoch=3,
    batch=8,
    offsets=Offsets({"a": {0: 5, 10: 6}}, 2, frozenset({("a", 10)})),
    stream_times={"a": {0: 100, 10: 50}},
    next_ends={"w": 3600},
    watermarks={"w": 50},
    ended={1: 4},
    shards=2,
    topic_ids={"a": "id"},
    clean=False,
)


def test_an_entry_survives_encoding() -> None:
    assert Entry.of_bytes(FULL.to_bytes()) == FULL
    assert Entry.of_bytes(Entry().to_bytes()) == Entry()


def test_an_entry_of_another_layout_is_rejected_with_a_hint() -> None:
    data = json.loads(FULL.to_bytes()) | {"layout": 99}
    with pytest.raises(StateError, match="layout 99") as caught:
        Entry.of_bytes(json.dumps(data).encode())
    assert caught.value.hint


def test_its_fence_is_that_of_the_next_batch() -> None:
    fence = FULL.fence
    assert fence.attempt == Attempt(3, 9)
    assert fence.counts(3, 8) and not fence.counts(3, 9)
    assert fence.counts(1, 4) and not fence.counts(1, 5)


def test_metadata_keys_of_two_queries_never_collide() -> None:
    assert metadata_key_of("a", "ledger") != metadata_key_of("b", "ledger")


def test_after_a_seal_committed_batches_count_and_started_ones_do_not() -> None:
    sealed = FULL.sealed(after=Entry(epoch=5, batch=20), batch=7)
    assert (sealed.epoch, sealed.batch, sealed.clean) == (6, 20, True)
    fence = sealed.fence
    assert fence.counts(3, 8) and not fence.counts(3, 9)
    assert fence.counts(1, 4) and not fence.counts(1, 5)
    assert (sealed.offsets, sealed.shards) == (FULL.offsets, FULL.shards)


def test_a_seal_alone_voids_started_batches() -> None:
    sealed = FULL.sealed(batch=9)
    assert (sealed.epoch, sealed.batch) == (4, 9)
    assert not sealed.fence.counts(3, 9)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b"null",
        b"[]",
        b"3",
        b"{}",
        b'{"layout": 4}',
        b"[" * 100_000,
        FULL.to_bytes()[:-40],
        FULL.to_bytes().replace(b'"0": 5', b'"x": 5'),
        FULL.to_bytes().replace(b'"topics": {', b'"topics": [{').replace(b"}}", b"}]}", 1),
    ],
)
def test_an_entry_in_another_format_is_a_state_error(data: bytes) -> None:
    with pytest.raises(StateError) as raised:
        Entry.of_bytes(data)
    assert raised.value.hint
