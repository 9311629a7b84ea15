"""Bodies of webhooks: split, decompressed, bounded."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.sources.bodies import BadBody, BodyTooLarge, decompressed, field_of, values_of


def compressed(data: bytes) -> bytes:
    """Compress without the time, so that the parameters of tests are the same in every process."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("json", b' {"a": 1} ', [b' {"a": 1} ']),
        ("json", b"[1, 2]", [b"[1, 2]"]),
        ("array", b'[{"a": 1}, 2, null]', [b'{"a":1}', b"2", b"null"]),
        ("array", b"[]", []),
        ("array", b'{"a":1}', [b'{"a":1}']),
        ("ndjson", b'{"a":1}\r\n\n2\n', [b'{"a":1}', b"2"]),
        ("ndjson", b"", []),
        ("raw", b"\xff\x00", [b"\xff\x00"]),
    ],
)
def test_a_body_is_split_into_values(kind: str, body: bytes, expected: list[bytes]) -> None:
    assert values_of(kind, body) == expected


@pytest.mark.parametrize(
    ("kind", "body"),
    [("json", b""), ("json", b"{"), ("array", b"[1,"), ("ndjson", b"1\n{\n"), ("json", b"[" * 100_000)],
)
def test_a_malformed_body_is_refused_as_a_whole(kind: str, body: bytes) -> None:
    with pytest.raises(BadBody):
        values_of(kind, body)


def test_the_malformed_line_is_named() -> None:
    with pytest.raises(BadBody, match="line 3 is not JSON"):
        values_of("ndjson", b"1\n2\nx")


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", b"data"),
        ("identity", b"data"),
        ("gzip", compressed(b"data")),
        ("GZIP", compressed(b"da") + compressed(b"ta")),
        ("deflate", zlib.compress(b"data")),
        ("deflate, gzip", compressed(zlib.compress(b"data"))),
    ],
)
def test_a_body_is_decompressed(encoding: str, body: bytes) -> None:
    assert decompressed(encoding, body, 1_000) == b"data"


def test_a_small_body_that_expands_without_end_is_refused() -> None:
    with pytest.raises(BodyTooLarge):
        decompressed("gzip", compressed(b"\0" * 100_000_000), 1 << 20)
    with pytest.raises(BodyTooLarge):
        decompressed("gzip, gzip", compressed(compressed(b"\0" * 10_000_000)), 1 << 20)


def test_the_largest_body_allowed_is_decompressed() -> None:
    assert len(decompressed("gzip", compressed(b"\0" * 1_000), 1_000)) == 1_000


@pytest.mark.parametrize(
    ("encoding", "body"), [("gzip", b"no gzip"), ("gzip", compressed(b"data")[:-3]), ("br", b"x"), ("deflate", b"")]
)
def test_a_body_that_cannot_be_decompressed_is_refused(encoding: str, body: bytes) -> None:
    if encoding == "deflate":
        assert decompressed(encoding, body, 1_000) == b""
        return
    with pytest.raises(BadBody):
        decompressed(encoding, body, 1_000)


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "gzip,deflate", "identity"]))
def test_any_bytes_are_decompressed_or_refused(body: bytes, encoding: str) -> None:
    try:
        assert len(decompressed(encoding, body, 500)) <= 500
    except (BadBody, BodyTooLarge):
        pass


@given(st.binary(max_size=200), st.sampled_from(["json", "array", "ndjson"]))
def test_any_bytes_are_split_or_refused(body: bytes, kind: str) -> None:
    try:
        assert all(isinstance(each, bytes) for each in values_of(kind, body))
    except BadBody:
        pass


def test_a_field_is_found_by_its_path() -> None:
    document = {"data": {"id": "e1", "n": 7, "list": [1]}, "id": True}
    assert field_of(document, ["data", "id"]) == "e1"
    assert field_of(document, ["data", "n"]) == "7"
    assert field_of(document, ["id"]) == "true"
    assert field_of(document, ["data", "list"]) is None
    assert field_of(document, ["data", "id", "deeper"]) is None
    assert field_of([1], ["data"]) is None


@pytest.mark.parametrize(
    ("depth", "accepted"), [(250, ("json", "ndjson", "array")), (300, ("json", "ndjson")), (2_000, ()), (100_000, ())]
)
def test_values_that_are_nested_deeply_are_whole_or_an_error_of_the_body(depth: int, accepted: tuple[str, ...]) -> None:
    deep = b"[" * depth + b"]" * depth
    for kind, body in (("json", deep), ("ndjson", deep), ("array", b"[" + deep + b"]")):
        if kind in accepted:
            assert values_of(kind, body) == [deep]
        else:
            with pytest.raises(BadBody, match="JSON"):
                values_of(kind, body)
