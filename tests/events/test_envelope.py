"""The rules of CloudEvents 1.0 for attributes and data, and hostile records."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import potok
from hostile import explored
from potok.events.envelope import BadEnvelope, data_object, read_dictionary, read_structured, write_structured
from potok.events.event_type import event_types
from potok.events.http_binding import UnknownMediaType, read_request
from potok.events.kafka_binding import read_record
from potok.events.read import read_events
from potok.log.broker import HEADERS

LEAST = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


@potok.event("envelope.thing")
@dataclass
class Thing:
    name: str
    amount: int = 0


def structured(**changes: Any) -> Any:
    return read_structured({name: item for name, item in {**LEAST, **changes}.items() if item is not ...})


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "1-555-123-4567"},
        {"source": "mailto:cncf-wg-serverless@lists.cncf.io"},
        {"source": "https://[::1]:80/a%20b?c=d&e#f"},
        {"dataschema": "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66"},
        {"datacontenttype": 'text/plain; charset="utf-8"; a=b'},
        {"time": "2024-02-29T23:59:60.123456789+14:00"},
        {"subject": None, "data": None, "myext": 2147483647, "other1": False},
        {"myext": "é \U0001f600"},
    ],
)
def test_what_the_specification_allows_is_accepted(changes: dict[str, Any]) -> None:
    assert structured(**changes).attributes["id"] == "1"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": ""}, '"id" is missing or empty'),
        ({"id": 5}, '"id" is missing or empty'),
        ({"type": ...}, '"type" is missing or empty'),
        ({"specversion": ...}, '"specversion" is missing'),
        ({"specversion": "0.3"}, '"specversion" is "0.3"'),
        ({"source": "a b"}, '"source" is not a URI'),
        ({"source": "a#b#c"}, '"source" is not a URI'),
        ({"source": ":a"}, '"source" is not a URI'),
        ({"source": "/%zz"}, '"source" is not a URI'),
        ({"dataschema": "/relative"}, '"dataschema" is not an absolute URI'),
        ({"datacontenttype": "json"}, '"datacontenttype" is not a media type'),
        ({"subject": ""}, '"subject" is empty'),
        ({"time": "2024-01-15"}, '"time" is not a timestamp'),
        ({"time": "2024-02-30T00:00:00Z"}, '"time" is not a timestamp'),
        ({"myExt": "x"}, '"myExt" is not the name of an attribute'),
        ({"my_ext": "x"}, '"my_ext" is not the name of an attribute'),
        ({"myext": 1.5}, '"myext" is not text, an integer or a boolean'),
        ({"myext": {"a": 1}}, '"myext" is not text, an integer or a boolean'),
        ({"myext": 2147483648}, '"myext" is not an integer of 32 bits'),
        ({"myext": "a\u0085"}, '"myext" has a control character'),
        ({"myext": "\U0002fffe"}, '"myext" has a control character'),
        ({"data": 1, "data_base64": "AA=="}, "data or data_base64, not both"),
        ({"data_base64": "*"}, "data_base64 is not base64"),
        ({"data_base64": 5}, "data_base64 is not base64"),
    ],
)
def test_what_the_specification_forbids_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadEnvelope, match=re.escape(reason)):
        structured(**changes)


def test_text_in_data_of_json_stays_text_and_bytes_are_decoded() -> None:
    assert data_object(structured(data='{"a": 1}')) == '{"a": 1}'
    assert data_object(structured(data_base64="eyJhIjogMX0=")) == {"a": 1}
    with pytest.raises(BadEnvelope, match='data of type "text/xml" is not JSON'):
        data_object(structured(datacontenttype="text/xml", data="<a/>"))


def test_bytes_that_are_not_json_are_written_in_base64() -> None:
    event = structured(datacontenttype="application/octet-stream", data_base64="AAE=")
    assert orjson.loads(write_structured(event)) == {
        **LEAST,
        "datacontenttype": "application/octet-stream",
        "data_base64": "AAE=",
    }


_any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_attributes = st.dictionaries(
    st.sampled_from([*LEAST, "time", "subject", "data", "data_base64", "datacontenttype", "dataschema", "eventversion"])
    | st.text(max_size=5),
    _any_json | st.sampled_from(["1.0", "envelope.thing", "application/json", "2024-01-15T10:00:00Z"]),
)
_dictionaries = st.dictionaries(
    st.sampled_from(["event_id", "event_type", "event_version", "timestamp", "source", "data", "metadata"]),
    _any_json | st.sampled_from(["envelope.thing", "1.0", "2024-01-15T10:00:00Z"]),
)


def _dumped(value: Any) -> bytes:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)


_values = (
    st.none()
    | st.binary(max_size=30)
    | st.one_of(_attributes.map(lambda more: {**LEAST, "type": "envelope.thing", **more}), _dictionaries, _any_json)
    .filter(lambda value: _encodable(value))
    .map(_dumped)
)
_headers = st.none() | st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["content-type", "Content-Type", "ce_", "ce_id", "ce_type", "ce_x\n", "other"])
            | st.text(max_size=5),
            "value": st.none()
            | st.binary(max_size=8)
            | st.sampled_from([b"application/cloudevents+json", b"application/json", b"1.0", b"envelope.thing"]),
        }
    ),
    max_size=6,
)


def _encodable(value: Any) -> bool:
    try:
        _dumped(value)
    except (orjson.JSONEncodeError, TypeError):
        return False
    return True


@explored(300)
@given(st.lists(st.tuples(_values, _headers), max_size=4), st.sampled_from(["any", "cloudevents", "dictionary"]))
def test_a_hostile_record_is_an_event_or_an_error_of_its_own(records: list[Any], envelope: str) -> None:
    values = pa.array([value for value, _ in records], pa.binary())
    listed = [[h for h in headers if _utf8(h["name"])] if headers else headers for _, headers in records]
    headers = pa.array(listed, HEADERS)
    read = read_events(values, headers, event_types([Thing], envelope))
    assert {*read.rows.tolist(), *read.errors} == set(range(len(records)))
    assert len(read.values) == len(read.headers) == len(read.times) == len(read.rows)


def _utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@explored(300)
@given(st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=12)), max_size=6), st.binary(max_size=40))
def test_a_hostile_request_is_events_or_an_error(headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    for kind in (b"application/cloudevents+json", b"application/cloudevents-batch+json", b"text/plain"):
        for more in ([], [(b"ce-id", b"%ff"), (b"ce-specversion", b"1.0")]):
            with contextlib.suppress(BadEnvelope, UnknownMediaType):
                for event in read_request([*headers, *more, (b"content-type", kind)], body):
                    assert event.envelope.attributes["id"]


def test_deep_and_long_records_are_errors_not_crashes() -> None:
    deep = b"[" * 100_000
    for value in (deep, b'{"data":' + deep, b'{"event_type":"' + b"x" * 1_000_000 + b'"}', b'{"event_type":' + deep):
        with pytest.raises(BadEnvelope) as error:
            read_record(value, None)
        assert len(str(error.value)) < 1_000
    with pytest.raises(BadEnvelope):
        read_dictionary(orjson.dumps({"event_id": "1", "event_type": "t", "timestamp": "9" * 100_000}))
