"""Functions of URLs: extract parts, encode and decode."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote_plus, unquote_plus

from potok.compat.java.uri import Uri, parse_uri
from potok.sql.functions.function import Overload, ScalarFunction, SqlFunction, each_row, takes
from potok.sql.types import INT, VARCHAR

_HALF_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


def _encode(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


def _decode(text: str) -> str:
    if _HALF_ESCAPE.search(text):
        raise ValueError(f"'{text}' has a % that is not followed by two hexadecimal digits")
    return unquote_plus(text, errors="replace")


def _parameter(url: str, name: str) -> str | None:
    query = parse_uri(url).query
    for parameter in () if query is None else query.split("&"):
        key, _, value = parameter.partition("=")
        if key == name:
            return value
    return None


def _part(name: str, of: Callable[[Uri], Any], summary: str, example: str, result: Any = VARCHAR) -> ScalarFunction:
    return ScalarFunction(
        name,
        "url",
        summary,
        (
            Overload(
                f"{name}(url VARCHAR)",
                takes(VARCHAR, result=result),
                each_row(lambda url: of(parse_uri(url))),
            ),
        ),
        example=example,
    )


def _of_text(name: str, function: Callable[[str], str], summary: str, example: str) -> ScalarFunction:
    overload = Overload(f"{name}(text VARCHAR)", takes(VARCHAR, result=VARCHAR), each_row(function))
    return ScalarFunction(name, "url", summary, (overload,), example=example)


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    _of_text(
        "URL_DECODE_PARAM",
        _decode,
        "What URL_ENCODE_PARAM has made of a text, back.",
        "URL_DECODE_PARAM('url+encoded%21')  -- 'url encoded!'",
    ),
    _of_text(
        "URL_ENCODE_PARAM",
        _encode,
        "The text encoded for the query of a URL (application/x-www-form-urlencoded: a blank is a +).",
        "URL_ENCODE_PARAM('url encoded!')  -- 'url+encoded%21'",
    ),
    _part(
        "URL_EXTRACT_FRAGMENT",
        lambda uri: uri.fragment,
        "What follows the #, decoded; NULL if there is none.",
        "URL_EXTRACT_FRAGMENT('http://test.com#frag%20space')  -- 'frag space'",
    ),
    _part(
        "URL_EXTRACT_HOST",
        lambda uri: uri.host,
        "The name of the host; NULL if there is none.",
        "URL_EXTRACT_HOST('http://test.com:8080/path')  -- 'test.com'",
    ),
    ScalarFunction(
        "URL_EXTRACT_PARAMETER",
        "url",
        "The value, decoded, of the first parameter of this name in the query; empty if it has none, NULL if there is "
        "no such parameter.",
        (
            Overload(
                "URL_EXTRACT_PARAMETER(url VARCHAR, name VARCHAR)",
                takes(VARCHAR, VARCHAR, result=VARCHAR),
                each_row(_parameter),
            ),
        ),
        example="URL_EXTRACT_PARAMETER('http://test.com?a%20b=c%20d', 'a b')  -- 'c d'",
    ),
    _part(
        "URL_EXTRACT_PATH",
        lambda uri: uri.path,
        "The path, decoded; empty if there is none.",
        "URL_EXTRACT_PATH('http://test.com/path/to#a')  -- '/path/to'",
    ),
    _part(
        "URL_EXTRACT_PORT",
        lambda uri: uri.port,
        "The port, if the URL names one; else NULL.",
        "URL_EXTRACT_PORT('http://localhost:8080/path')  -- 8080",
        INT,
    ),
    _part(
        "URL_EXTRACT_PROTOCOL",
        lambda uri: uri.scheme,
        "The protocol; NULL if there is none.",
        "URL_EXTRACT_PROTOCOL('http://test.com?a=foo')  -- 'http'",
    ),
    _part(
        "URL_EXTRACT_QUERY",
        lambda uri: uri.query,
        "The query, decoded; NULL if there is none.",
        "URL_EXTRACT_QUERY('http://test.com?a=foo%20bar&b=baz')  -- 'a=foo bar&b=baz'",
    ),
)
