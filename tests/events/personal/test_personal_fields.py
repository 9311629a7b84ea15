"""Personal fields are encrypted where events are written, decrypted where they are read, and None once forgotten."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

import potok
from potok.errors import SetupError, TopologyError
from potok.events.envelope import Envelope
from potok.events.personal.encryption import encrypt
from potok.events.personal.key_store import KeyStore, open_key_store
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.operations.forget_subject import forget_subject
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.testing import TestDriver


@potok.event("personal.registered", version=2)
@dataclass
class Registered:
    user_id: str
    email: Annotated[str, potok.personal(subject="user_id")]
    tags: Annotated[list[str] | None, potok.personal(subject="user_id")] = None
    plan: str = "free"


@potok.upcast("personal.registered", from_version=1)
def registered_1(data: dict[str, Any]) -> Any:
    return {"user_id": data["user_id"], "email": data["mail"] and data["mail"].lower()}


def writing(envelope: Any = "cloudevents") -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("sign-up")
    signed_up = builder.stream("sign-ups").map_values(lambda v: Registered(v["user"], v["email"], v.get("tags")))
    signed_up.to("users", envelope=envelope, event=Registered)
    return builder


def fold(key: Any, value: Any, row: Any) -> Any:
    if isinstance(value, potok.SubjectForgotten):
        return None if row is None else {**row, "email": None, "tags": None}
    return {"email": value.email, "tags": value.tags, "plan": value.plan}


def reading() -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("accounts")
    users = builder.events("users", types=[Registered, potok.SubjectForgotten])
    by_user = users.group_by(lambda v: v["subject"] if v["event_type"] == "potok.subject.forgotten" else v["user_id"])
    by_user.aggregate(initializer=None, aggregator=fold, name="profiles")
    return builder


class Accounts:
    """A query that writes events with personal fields, and one that reads them, on one log."""

    def __init__(self, directory: Path, envelope: str = "cloudevents", **options: Any) -> None:
        self.writer = TestDriver(writing(envelope), directory=directory, **options)
        self.reader = TestDriver(reading(), directory=directory, **options)
        self.keys = open_key_store(f"{directory}.keys")

    def __enter__(self) -> Accounts:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.leave()
        self.writer.close()

    def sign_up(self, user: str, **more: Any) -> None:
        self.writer.send("sign-ups", {"user": user, "email": f"{user}@example.org", **more}, key=user)
        self.writer.run()

    def forget(self, user: str) -> list[str]:
        return forget_subject(self.writer.broker, self.keys, user)

    def profiles(self) -> dict[str, Any]:
        self.reader.run()
        assert self.reader.dead_letters() == self.writer.dead_letters() == []
        return dict(self.reader.table("profiles").all())


@pytest.mark.parametrize("envelope", ["cloudevents", "cloudevents_binary", "dictionary"])
def test_what_is_personal_is_encrypted_in_the_log_and_plain_in_tables(tmp_path: Path, envelope: str) -> None:
    with Accounts(tmp_path / "log", envelope) as accounts:
        accounts.sign_up("ann", tags=["vip", "é"])
        (record,) = accounts.writer.read("users")
        assert b"example.org" not in record.raw_value and b"vip" not in record.raw_value
        assert b'"plan":"free"' in record.raw_value
        assert accounts.profiles() == {"ann": {"email": "ann@example.org", "tags": ["vip", "é"], "plan": "free"}}


def test_a_forgotten_subject_reads_as_none_and_tables_fold_it(tmp_path: Path) -> None:
    with Accounts(tmp_path / "log") as accounts:
        accounts.sign_up("ann")
        accounts.sign_up("bob")
        assert accounts.profiles()["ann"]["email"] == "ann@example.org"
        assert accounts.forget("ann") == ["users"]
        assert accounts.profiles() == {
            "ann": {"email": None, "tags": None, "plan": "free"},
            "bob": {"email": "bob@example.org", "tags": None, "plan": "free"},
        }
        assert [record.value["type"] for record in accounts.writer.read("users")][-1] == "potok.subject.forgotten"


@pytest.mark.parametrize("read_before", [True, False])
def test_tables_are_the_same_whether_events_were_read_before_or_after(tmp_path: Path, read_before: bool) -> None:
    with Accounts(tmp_path / "log") as accounts:
        accounts.sign_up("ann")
        if read_before:
            accounts.profiles()
        accounts.forget("ann")
        accounts.reader.restart()
        assert accounts.profiles() == {"ann": {"email": None, "tags": None, "plan": "free"}}


def test_later_data_of_a_forgotten_subject_is_not_written(tmp_path: Path) -> None:
    with Accounts(tmp_path / "log") as accounts:
        accounts.sign_up("ann")
        accounts.forget("ann")
        accounts.sign_up("ann")
        *_, late = accounts.writer.read("users")
        assert late.value["data"] == {"user_id": "ann", "email": None, "tags": None, "plan": "free"}
        assert "encryptedfields" not in late.value
        assert accounts.profiles() == {"ann": {"email": None, "tags": None, "plan": "free"}}


def test_equal_texts_have_different_tokens_and_a_replay_writes_the_same(tmp_path: Path) -> None:
    with Accounts(tmp_path / "log") as accounts:
        accounts.sign_up("ann", email="same")
        accounts.sign_up("ann", email="same")
        first, second = (record.value["data"]["email"] for record in accounts.writer.read("users"))
        assert first != second
        (key,) = accounts.keys.for_writing(["ann"], "users").values()
    envelope = Envelope({"id": "1", "source": "/s", "type": "t"})
    assert encrypt(key, b"x", envelope, "email") == encrypt(key, b"x", envelope, "email")
    assert encrypt(key, b"x", envelope, "email") != encrypt(key, b"y", envelope, "email")


def test_a_stream_without_the_type_skips_that_a_subject_was_forgotten(tmp_path: Path) -> None:
    builder = potok.StreamsBuilder("others")
    builder.events("users", types=[Registered]).map_values(lambda e: e.email).to("out")
    with Accounts(tmp_path / "log") as accounts:
        accounts.sign_up("ann")
        accounts.forget("ann")
        driver = TestDriver(builder, directory=tmp_path / "log")
        driver.run()
        assert [record.value for record in driver.read("out")] == [None]
        assert driver.dead_letters() == []
        driver.leave()


def keys_of(driver: TestDriver) -> KeyStore:
    return open_key_store(f"{driver.broker.directory}.keys")


def test_older_versions_are_decrypted_before_they_are_upcast() -> None:
    builder = potok.StreamsBuilder("reading")
    builder.events("users", types=[Registered]).map_values(lambda e: e.email).to("out")
    with TestDriver(builder) as driver:
        keys = keys_of(driver)
        key = keys.for_writing(["ann"], "users")["ann"]
        for number in range(2):
            driver.send("users", old_event(key, "ann", number), key="ann")
        driver.run()
        assert [record.value for record in driver.read("out")] == ["ann@example.org"] * 2
        keys.forget("ann")
        driver.send("users", old_event(key, "ann", 3), key="ann")
        driver.run()
        assert [record.value for record in driver.read("out")][-1] is None
        assert driver.dead_letters() == []


def old_event(key: Any, user: str, number: int, **changes: Any) -> dict[str, Any]:
    """An event of version 1, whose personal field had another name."""
    envelope = Envelope({"id": f"e{number}", "source": "s", "type": "personal.registered"})
    token = encrypt(key, b'{"value":"ANN@example.org"}', envelope, "mail")
    event = {"event_id": f"e{number}", "event_type": "personal.registered", "event_version": "1.0", "source": "s"}
    data = {"user_id": user, "mail": token}
    return {**event, "data": data, "metadata": {"encrypted_fields": ["mail"]}, **changes}


def moved(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "event_id": "another"}


def changed(event: dict[str, Any]) -> dict[str, Any]:
    token = bytearray(base64.urlsafe_b64decode(event["data"]["mail"]))
    token[-1] ^= 1
    return {**event, "data": {**event["data"], "mail": base64.urlsafe_b64encode(bytes(token)).decode()}}


def of_another_key(event: dict[str, Any]) -> dict[str, Any]:
    token = base64.urlsafe_b64encode(b"\0" * 60).decode()
    return {**event, "data": {**event["data"], "mail": token}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (moved, "it was changed, or belongs to another event"),
        (changed, "it was changed, or belongs to another event"),
        (of_another_key, "a key that the key store does not have"),
        (lambda e: {**e, "data": {**e["data"], "mail": "AAAA"}}, "is not encrypted, although the envelope says so"),
        (lambda e: {**e, "data": {**e["data"], "mail": "\u0130"}}, "is not encrypted, although the envelope says so"),
        (lambda e: {**e, "data": {**e["data"], "mail": 5}}, "is not encrypted, although the envelope says so"),
        (lambda e: {**e, "data": {"user_id": "ann"}}, "is not encrypted, although the envelope says so"),
        (lambda e: {**e, "data": [1]}, "the data is not an object"),
        (lambda e: {**e, "metadata": {"encrypted_fields": ["mail", "user_id"]}}, 'field "user_id" is not encrypted'),
    ],
)
def test_a_hostile_ciphertext_is_a_dead_letter_of_that_record(change: Any, reason: str) -> None:
    builder = potok.StreamsBuilder("reading")
    builder.events("users", types=[Registered]).map_values(lambda e: e.email).to("out")
    with TestDriver(builder) as driver:
        key = keys_of(driver).for_writing(["ann"], "users")["ann"]
        driver.send("users", change(old_event(key, "ann", 1)), key="ann")
        driver.send("users", old_event(key, "ann", 2), key="ann")
        driver.run()
        (letter,) = driver.dead_letters()
        assert reason in letter.error
        assert [record.value for record in driver.read("out")] == ["ann@example.org"]


def test_the_error_of_a_dead_letter_does_not_quote_personal_data() -> None:
    builder = potok.StreamsBuilder("reading")
    builder.events("users", types=[Registered]).to("out")
    with TestDriver(builder) as driver:
        key = keys_of(driver).for_writing(["ann"], "users")["ann"]
        event = old_event(key, "ann", 1)
        driver.send("users", {**event, "data": {"mail": event["data"]["mail"]}}, key="ann")
        driver.run()
        (letter,) = driver.dead_letters()
        assert (
            letter.error
            == "data of personal.registered with personal fields cannot be upcast, or does not fit its class"
        )


def test_a_value_without_a_subject_is_a_dead_letter() -> None:
    @potok.event("personal.noted")
    @dataclass
    class Noted:
        who: str | None
        text: Annotated[str, potok.personal(subject="who")]

    builder = potok.StreamsBuilder("notes")
    builder.stream("in").map_values(lambda v: {"who": v["who"], "text": v["text"]}).to(
        "out", envelope="cloudevents", event=Noted
    )
    with TestDriver(builder) as driver:
        driver.send("in", {"who": None, "text": "a secret"}, key="k")
        driver.send("in", {"who": None, "text": None}, key="k")
        driver.run()
        (letter,) = driver.dead_letters()
        assert letter.error == 'personal field "text" has a value, and the event names no subject for it'
        assert [record.value["data"] for record in driver.read("out")] == [{"who": None, "text": None}]


def test_the_keys_are_looked_up_once_for_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = KeyStore.keys
    monkeypatch.setattr(KeyStore, "keys", lambda self, ids: calls.append(len(ids)) or original(self, ids))
    builder = potok.StreamsBuilder("reading")
    builder.events("users", types=[Registered]).to("out")
    with TestDriver(builder) as driver:
        key = keys_of(driver).for_writing(["ann"], "users")["ann"]
        for number in range(50):
            driver.send("users", old_event(key, "ann", number), key="ann")
        calls.clear()
        driver.run()
    assert calls == [1]


def test_personal_fields_need_a_key_store_apart_from_the_log(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path / "data")
    settings = Settings(broker=broker.url, personal_keys="")
    with pytest.raises(SetupError, match="events with personal fields need the setting personal_keys"):
        prepare(reading(), broker, settings)
    with pytest.raises(SetupError, match="is inside the directory of the log"):
        prepare(reading(), broker, Settings(broker=broker.url, personal_keys=f"file:{tmp_path}/data/keys"))
    broker.close()


@dataclass
class Plain:
    user_id: str
    email: Annotated[str, potok.personal(subject="user_id")]


@potok.event("personal.nested")
@dataclass
class Nested:
    user_id: str
    inner: Plain


@potok.event("personal.odd")
@dataclass
class Odd:
    user_id: float
    email: Annotated[str, potok.personal(subject="user_id")]


def test_personal_fields_outside_of_events_are_refused() -> None:
    with pytest.raises(TopologyError, match='the value has the personal field "email"'):
        potok.StreamsBuilder("q").stream("in", value=Plain)
    with pytest.raises(TopologyError, match='field "inner" of Nested has the personal field "email"'):
        potok.StreamsBuilder("q").events("in", types=[Nested])
    with pytest.raises(TopologyError, match='has the subject "user_id", which is not such a field'):
        potok.StreamsBuilder("q").events("in", types=[Odd])


@pytest.mark.spark
def test_workers_of_spark_use_the_same_keys(spark: Any, tmp_path: Path) -> None:
    with Accounts(tmp_path / "log", spark=True, spread=True) as accounts:
        for number in range(8):
            accounts.sign_up(f"u{number}")
        assert accounts.profiles()["u3"]["email"] == "u3@example.org"
        accounts.forget("u3")
        found = accounts.profiles()
        assert (found["u3"]["email"], found["u4"]["email"]) == (None, "u4@example.org")
