"""Secrets in URLs, options, headers and errors are shown nowhere, whatever characters they are made of."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from potok import StreamsBuilder
from potok.backends.state_url import Where
from potok.cli.prompt.targets.http import Http
from potok.errors import PotokError, StateError
from potok.faust.settings.credentials import SASLCredentials, options_of
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.kafka.options import KafkaOptions
from potok.log.open import open_broker
from potok.redact import MASK, _known, redact, redact_url, remember, safe_cause, split_url
from potok.runtime.output.dead_letter_reporter import DeadLetterReporter
from potok.settings import Settings
from potok.sinks.http.client import Client
from potok.statements.inspect.settings import show_properties
from potok.topology.describe import describe

# Letters that stand in no message, so that a part of a password is found wherever it is shown.
LETTERS = "ЖЩЮЯфш"
passwords = st.text(LETTERS + "#/?@:%=+ '\"\\[]*1", min_size=4, max_size=12)


def leaks(password: str, text: str) -> list[str]:
    """The parts of a password that can be read in a text: any of its letters."""
    return [letter for letter in password if letter in LETTERS and (letter in text or quote(letter) in text)]


def reported(work: Callable[[], Any]) -> str:
    """What people see of a piece of work: its result, or its error with all that led to it."""
    _known.clear()
    try:
        found = work()
        return f"{found!s} {found!r}"
    except Exception as error:  # noqa: BLE001 - whatever is raised is shown
        return "".join(traceback.TracebackException.from_exception(error, limit=0).format())


def in_urls(password: str) -> Iterator[str]:
    """URLs with the password at each place where one can be, as it is and percent-encoded."""
    for text in (password, quote(password, safe="")):
        yield f"postgresql://anna:{text}@host:5432/db"
        yield f"postgresql://anna:{text}@host/db?sslmode=require"
        yield f"postgresql://:{text}@host/db"
        yield f"postgresql://host/db?user=anna&password={text}"
        yield f"postgresql://host/db?sslpassword={text}&sslmode=require"
        yield f"postgresql://anna:{text}@host/db?sslpassword={text}"
        yield f"redis://:{text}@host:6379/0"
        yield f"rediss://anna:{text}@host/0?ssl_password={text}"
        yield f"redis:anna:{text}@host"
        yield f"mysql://anna:{text}@host/db"
        yield f"kafka://host:9092?sasl.username=anna&sasl.password={text}"
        yield f"kafka://host:9092?ssl.key.password={text}&client.id=me"
        yield f"kafka://anna:{text}@host:9092"
        yield f"kafka:anna:{text}@host"
        yield f"kafka://host?home=redis://:{text}@far/0"
        yield f"kafka://host?home={quote(f'postgresql://a:{text}@far/db', safe='')}"
        yield f"http://anna:{text}@host/orders"
        yield f"https://host/orders?token={text}"


@given(passwords)
def test_a_url_is_shown_without_its_password(password: str) -> None:
    for url in in_urls(password):
        assert not leaks(password, redact_url(url)), url


@settings(max_examples=40, deadline=None)
@given(passwords)
def test_no_component_that_takes_a_url_shows_its_password(password: str) -> None:
    for url in in_urls(password):
        given = Settings(broker=url, state=url, kafka={"sasl.password": password}, spark={"spark.x.secret": password})
        seen = [
            reported(lambda: Where.of(url)),
            reported(lambda: Where.of(url).with_password()),
            reported(lambda: KafkaOptions.of_url(url)),
            reported(lambda: KafkaOptions.of_url(url).url),
            reported(lambda: Http(url, password).url),
            reported(lambda: given),
            reported(lambda: [list(row) for row in show_properties(given, {"ssl.key.password": password}).rows]),
            reported(lambda: open_broker(url, replace(given, kafka={}, state="")) if "kafka" not in url else ""),
        ]
        for text in seen:
            assert not leaks(password, text), (url, text)


@settings(max_examples=15, deadline=None)
@given(passwords)
def test_no_sink_shows_its_password(password: str) -> None:
    for url in in_urls(password):
        for build in (
            lambda stream: stream.to_postgres(url, table="orders"),
            lambda stream: stream.to_http(url, headers={"Authorization": f"Bearer {password}"}),
        ):

            def topology(build: Any = build) -> str:
                builder = StreamsBuilder("q")
                build(builder.stream("orders"))
                built = builder.build()
                return f"{describe(built)} {[*built.nodes]} {DeadLetterReporter(built, redact_url(url))._see}"

            assert not leaks(password, reported(topology)), url


@given(passwords)
def test_credentials_and_options_do_not_show_passwords(password: str) -> None:
    made = SASLCredentials(username="anna", password=password)
    seen = [
        reported(lambda: made),
        reported(lambda: options_of(("anna", password))),
        reported(lambda: options_of({"password": password})),
        reported(lambda: KafkaOptions(("a:1",), {"sasl.password": password, "ssl.key.password": password})),
        reported(lambda: Settings.load(environ={"POTOK_KAFKA_SASL_PASSWORD": password})),
        reported(lambda: Settings.load(environ={"POTOK_KAFKA": password})),
    ]
    assert not [text for text in seen if leaks(password, text)]


@given(passwords)
def test_remote_errors_are_shown_without_the_request(password: str) -> None:
    assume(len(password.strip()) >= 4)
    options = KafkaOptions(("a:1",), {"sasl.password": password})
    remember(password)
    for said in (f"login of {password} failed", f"bad value {password!r}", f"at /x?key={quote(password, safe='')}&y=1"):
        assert not leaks(password, options.hide(said))
        assert not leaks(password, str(PotokError(said)))
        assert safe_cause(ValueError(said)) is None
    assert safe_cause(ValueError("nothing of that kind")) is not None


def test_a_token_that_a_server_repeats_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client("http://127.0.0.1:1/x?sig=s1gnature!!", {"Authorization": "Bearer t0k3n-of-mine"}, 100, 1)
    assert redact("401: t0k3n-of-mine is not known") == f"401: {MASK} is not known"
    assert redact("Max retries exceeded with url: /x?sig=s1gnature!!").endswith(f"sig={MASK}")
    client.close()


@given(passwords)
def test_a_password_that_is_encoded_reaches_the_server_as_it_is(password: str) -> None:
    where = Where.of(f"postgresql://anna:{quote(password, safe='')}@host/db?sslpassword={quote(password, safe='')}")
    parts = split_url(where.url)
    assert parts is not None
    assert parts.password == password
    assert str(where) == "postgresql://anna@host/db"
    assert Where.of(str(where)).with_password() == where


@given(st.text(LETTERS + "@:", min_size=4, max_size=12))
def test_an_at_sign_in_a_password_need_not_be_encoded(password: str) -> None:
    parts = split_url(Where.of(f"redis://anna:{password}@host:6379/0").url)
    assert parts is not None
    assert (parts.user, parts.password, parts.hosts) == ("anna", password, "host:6379")


@pytest.mark.parametrize("password", ["a/b", "a?b", "a#b"])
def test_a_password_that_ends_a_host_is_refused_with_what_to_write(password: str) -> None:
    with pytest.raises(StateError, match="is not a valid URL") as caught:
        Where.of(f"postgresql://anna:{password}@host/db")
    assert "%2F %3F %23" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "kafka://localhost:9092",
        "kafka://a:1,b:2?client.id=me",
        "kafka://[::1]:9092",
        "postgresql://anna@host/db?sslmode=require",
        "postgresql:///db?host=/var/run/postgresql",
        "redis://host:6379/0",
        "http://localhost:8088/x?y=z",
        "file:./data",
        "./data",
        "/tmp/with@sign",
        "kafka://HOST:PORT",
    ],
)
def test_what_holds_no_secret_is_shown_as_it_is(url: str) -> None:
    text = f'write "{url}", for example'
    assert redact(text) == text
    if "PORT" not in url:
        assert redact_url(url) == url


def test_an_error_crosses_processes_without_secrets(tmp_path: Path) -> None:
    import pickle

    remember("Sesame-Open")
    error = pickle.loads(pickle.dumps(StateError("Sesame-Open is wrong", hint="not Sesame-Open")))
    assert "Sesame" not in str(error) + repr(error) + str(error.args)


def test_the_url_of_a_kafka_broker_names_its_options(tmp_path: Path) -> None:
    broker = KafkaBroker.at(f"kafka://a:1?client.id=me&sasl.password=AAA1&home={tmp_path}", Settings())
    assert "client.id=me" in broker.url
    assert "sasl.password=***" in broker.url
