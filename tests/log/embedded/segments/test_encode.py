from __future__ import annotations

import pyarrow as pa
import pytest

from log.records import batch_of
from potok.log.embedded.segments.encode import FRAME_BYTES, columns_of, encode, encode_record, normalised
from potok.log.embedded.segments.frame import ARROW, HEADER, HEADER_SIZE, ROWS, WITH_HEADERS
from potok.records.log_record import NO_TIMESTAMP, LogRecord

LIMIT = 64 << 20


def frames(batch: pa.RecordBatch) -> list[tuple[int, int, int]]:
    return [(frame.kind, frame.flags, frame.count) for frame, _ in encode(normalised(batch), LIMIT)]


def test_a_few_records_are_rows_and_more_are_arrow() -> None:
    assert frames(batch_of([b"v"] * 4)) == [(ROWS, 0, 4)]
    assert frames(batch_of([b"v"] * 5)) == [(ARROW, 0, 5)]


def test_headers_are_stored_only_where_a_record_has_some() -> None:
    plain = [LogRecord(b"k", b"v", 1)] * 10
    assert frames(columns_of(plain)) == [(ARROW, 0, 10)]
    assert frames(columns_of([*plain, LogRecord(b"k", b"v", 1, (("a", b"b"),))])) == [(ARROW, WITH_HEADERS, 11)]


def test_a_large_batch_is_cut_by_records_and_by_bytes() -> None:
    assert [count for _, _, count in frames(batch_of([b"v"] * 150_000))] == [65_536, 65_536, 18_928]
    for value, count in ((bytes(1 << 20), 40), (bytes(20 << 20), 3)):
        cut = list(encode(normalised(batch_of([value] * count)), LIMIT))
        assert sum(frame.count for frame, _ in cut) == count
        assert all(frame.body_size <= FRAME_BYTES + 4096 or frame.count == 1 for frame, _ in cut)


def test_a_slice_of_a_batch_is_serialized_with_its_own_bytes_only() -> None:
    part = batch_of([b"x" * 1000] * 1000).slice(500, 10)
    ((frame, _),) = encode(normalised(part), LIMIT)
    assert frame.body_size < 12_000


def test_a_header_says_what_the_frame_holds() -> None:
    frame, body = encode_record(LogRecord(b"key", b"value", 77), LIMIT)
    header = HEADER.unpack(frame.header(5, 99))
    assert len(body) % 8 == HEADER_SIZE % 8 == 0
    assert header[4:6] == (1, len(body))
    assert header[7:11] == (5, 99, 77, 77)


def test_one_record_has_a_small_overhead() -> None:
    frame, _ = encode_record(LogRecord(b"k" * 10, b"v" * 120, 1), LIMIT)
    assert frame.size - 130 <= 90


@pytest.mark.parametrize("times", [[None, 5], [NO_TIMESTAMP, 5]])
def test_a_missing_time_is_filled_in(times: list[int | None]) -> None:
    batch = pa.record_batch({"value": pa.array([b"a", b"b"]), "timestamp": pa.array(times, pa.int64())})
    first, second = normalised(batch).column("timestamp").to_pylist()
    assert first > 1_600_000_000_000
    assert second == 5
