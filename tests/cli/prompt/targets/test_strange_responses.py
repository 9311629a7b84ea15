"""Responses that a proxy cut off or replaced end in an error that says so, whatever their form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.prompt.targets.test_remote import answering, run
from potok.cli.prompt.targets.http import NoServer, ServerRefused, StrangeResponse
from potok.cli.prompt.targets.remote import Remote
from potok.errors import PotokError, SetupError
from potok.statements.results import Push

DONE = b'{"results": [{"kind": "done", "message": "x"}]}'
HEADER = b'{"queryId": "q", "columnNames": ["N"], "columnTypes": ["INTEGER"]}\n'
PUSH = "SELECT n FROM t EMIT CHANGES;"


def response(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), length or len(body), body)


def asked(answer: bytes, text: str = "SHOW STREAMS;") -> list[Any]:
    with answering(answer) as url:
        (result,) = run(Remote(url, None), text)
        return list(result) if isinstance(result, Push) else [result]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (response(DONE[:20], length=len(DONE)), "it was cut off"),
        (response(DONE[:20]), "it is not JSON"),
        (response(b"[" * 100_000), "it is not JSON"),
        (response(b"<html>Sign in</html>"), "it is not JSON"),
        (response(b'{"status": "up"}'), "it is not the result of a statement"),
        (response(b"[]"), "it is not the result of a statement"),
        (response(b'{"results": [{"kind": "rows", "columns": 5}]}'), "it is not the result of a statement"),
        (response(b'{"results": []}'), "0 results instead of 1"),
        (response(b'{"detail": "n', "502 Bad Gateway", 90), "status 502, and it was cut off"),
        (response(b'{"detail": "x", "line": "first", "column": 1}', "400 No"), "an error of unknown form"),
        (response(b'{"detail": "x", "line": 1}', "400 No"), "an error of unknown form"),
    ],
)
def test_a_response_that_cannot_be_read_says_why(answer: bytes, why: str) -> None:
    with pytest.raises(StrangeResponse, match=why) as raised:
        asked(answer)
    assert "proxy" in raised.value.hint


def test_a_gateway_that_answers_in_html_is_reported_with_its_status() -> None:
    with pytest.raises(ServerRefused, match="status 502"):
        asked(response(b"<html>Bad Gateway</html>", "502 Bad Gateway"))


@pytest.mark.parametrize(
    "answer",
    [
        response(HEADER + b"[1]\n", length=1_000),
        b"HTTP/1.0 200 OK\r\n\r\n" + HEADER + b"[1]\n[2",
        response(HEADER + b"[1]\n[2, 3]\n"),
        response(HEADER + b"[1]\n[2\n"),
        response(HEADER[:30] + b"\n"),
        response(b'{"columnNames": ["N"], "columnTypes": []}\n'),
        response(b'{"columnNames": ["N"], "columnTypes": ["INTEGER"], "keyColumns": [[]]}\n'),
        response(b"[]\n"),
    ],
)
def test_a_push_query_that_is_cut_off_or_garbled_does_not_end_as_if_it_were_complete(answer: bytes) -> None:
    with pytest.raises(StrangeResponse):
        asked(answer, PUSH)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["results", "kind", "columns", "rows", "details", "detail", "line", "message", "warnings"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["200 OK", "400 No", "503 Away"]), st.sampled_from(["SHOW STREAMS;", PUSH]))
def test_no_hostile_response_surfaces_as_an_internal_error(shape: Any, status: str, text: str) -> None:
    try:
        asked(response(json.dumps(shape).encode() + b"\n", status), text)
    except PotokError:
        pass


@pytest.mark.parametrize("token", ["0123456789abcdef\n", "schlüssel-0123456789"])
def test_a_token_that_http_cannot_carry_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(SetupError, match="the token cannot be sent") as raised:
        Remote("http://127.0.0.1:1", token)
    assert token.strip() not in str(raised.value)


def test_a_server_that_hangs_up_is_reported() -> None:
    with pytest.raises(NoServer):
        asked(b"")
