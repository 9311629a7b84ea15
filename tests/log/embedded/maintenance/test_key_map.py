from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.log.embedded.maintenance import key_map
from potok.log.embedded.maintenance.key_map import NOWHERE, KeyMap

KEYS = st.lists(st.lists(st.binary(max_size=2), min_size=1, max_size=20), max_size=6)


@given(added=KEYS, asked=st.lists(st.binary(max_size=2), max_size=20), unmerged=st.sampled_from([1, 5, 1 << 20]))
def test_the_last_offset_of_each_key_is_found(added: list[list[bytes]], asked: list[bytes], unmerged: int) -> None:
    expected: dict[bytes, int] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(key_map, "_UNMERGED", unmerged)
        keys = KeyMap()
        offset = 0
        for batch in added:
            keys.add(pa.array(batch, pa.binary()), np.arange(offset, offset + len(batch)))
            expected |= {key: offset + row for row, key in enumerate(batch)}
            offset += len(batch)
        found = keys.last_offsets(pa.array(asked, pa.binary()))
    assert found.tolist() == [expected.get(key, NOWHERE) for key in asked]
    assert len(keys) == len(expected)


def test_keys_whose_digests_share_a_prefix_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(keys: pa.Array) -> tuple[key_map.Words, key_map.Words]:
        numbers = [int(key) for key in keys.to_pylist()]
        return np.array([n % 2 for n in numbers], np.uint64), np.array(numbers, np.uint64)

    monkeypatch.setattr(key_map, "digests", alike)
    keys = KeyMap()
    keys.add(pa.array([b"%d" % n for n in range(10)]), np.arange(10))
    keys.add(pa.array([b"4", b"7"]), np.array([20, 21]))
    found = keys.last_offsets(pa.array([b"0", b"4", b"7", b"9", b"10", b"11"]))
    assert found.tolist() == [0, 20, 21, 9, NOWHERE, NOWHERE]


def test_a_map_takes_24_bytes_for_a_key_however_long_it_is() -> None:
    keys = KeyMap()
    keys.add(pa.array([b"k%d" % n * 50 for n in range(1000)]), np.arange(1000))
    keys.last_offsets(pa.array([b"k"]))
    assert sum(part.nbytes for part in (keys._first, keys._second, keys._last)) == 24_000
