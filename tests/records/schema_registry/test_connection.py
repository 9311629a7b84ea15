"""The setting `schema_registry`, and the names of subjects."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pytest

from potok.errors import SchemaError
from potok.records.formats.registered.declare import avro, for_topic
from potok.records.schema_registry.connection import Connection, connection_of, current_connection, using_connection
from potok.records.schema_registry.subjects import subject_of
from potok.redact import redact
from potok.settings import SettingError, Settings


def test_options_have_the_names_of_confluents_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_URL", "https://a:8081/, https://b:8081/base")
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO", "me:se:cret-word")
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_SSL_CA_LOCATION", "/etc/ca.pem")
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_AUTO_REGISTER_SCHEMAS", "False")
    monkeypatch.setenv(
        "POTOK_SCHEMA_REGISTRY_VALUE_SUBJECT_NAME_STRATEGY",
        "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
    )
    settings = Settings.load()
    found = connection_of(settings.schema_registry)
    assert found == Connection(
        ("https://a:8081", "https://b:8081/base"),
        "me",
        "se:cret-word",
        ca="/etc/ca.pem",
        registers=False,
        value_strategy="topic_record",
    )
    assert "cret-word" not in f"{found} {settings}" and "cret-word" not in redact("GET as me:se:cret-word")


def test_the_login_of_a_url_is_that_of_the_registry_and_is_not_shown() -> None:
    settings = Settings(schema_registry={"url": "http://me:hidden%2F1@host:8081"})
    found = connection_of(settings.schema_registry)
    assert found is not None
    assert (found.url, found.user, found.password) == ("http://host:8081", "me", "hidden/1")
    assert "hidden" not in f"{found} {settings}"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"url": "ftp://host"}, "schema_registry.url is not a URL of HTTP"),
        ({"url": "http://me:hid/den@host"}, "schema_registry.url is not a URL of HTTP"),
        ({"url": "http://host", "basic.auth.user.info": "hidden"}, "has no password"),
        ({"url": "http://host", "subject.name.strategy": "mine"}, 'no subject name strategy "mine"'),
        ({"url": "http://host", "auto.register.schemas": "maybe"}, "auto.register.schemas cannot be maybe"),
        ({"adress": "http://host"}, "no setting schema_registry.adress"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(SettingError, match=reason) as caught:
        connection_of(options)
    assert "hid" not in str(caught.value)


def test_tasks_use_the_registry_of_their_plan() -> None:
    own = Connection(("http://own:8081",), "me", "word")
    with using_connection(pickle.loads(pickle.dumps(own))):
        assert current_connection() == own
    assert current_connection() is None


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("topic", "orders-value"), ("record", "shop.Order"), ("topic_record", "orders-shop.Order")],
)
def test_subjects_are_named_by_their_strategy(strategy: str, subject: str) -> None:
    assert subject_of("orders", "value", "shop.Order", strategy) == subject


def test_a_strategy_by_the_name_of_the_record_needs_one() -> None:
    with pytest.raises(SchemaError, match="names subjects by the record"):
        subject_of("orders", "key", "", "record")


def test_the_table_of_the_settings_file_may_be_dotted_or_quoted(tmp_path: Path) -> None:
    (tmp_path / "potok.toml").write_text(
        '[schema_registry]\nurl = "http://host:8081"\n"basic.auth.user.info" = "me:hidden"\n'
        'ssl.ca.location = "/ca.pem"\nauto.register.schemas = false\n'
    )
    found = connection_of(Settings.load(directory=tmp_path, environ={}).schema_registry)
    assert found == Connection(("http://host:8081",), "me", "hidden", ca="/ca.pem", registers=False)


def test_formats_get_the_subject_of_their_topic_by_the_strategy_of_the_registry() -> None:
    own = Connection(("http://own:8081",), key_strategy="topic", value_strategy="record")
    with using_connection(own):
        assert for_topic("avro_sr;full_name=shop.Order", "orders", "value").endswith(";subject=shop.Order")
        assert for_topic("protobuf_sr", "orders", "key") == "protobuf_sr;subject=orders-key"
        assert for_topic("json_sr;subject=mine", "orders", "value") == "json_sr;subject=mine"
        assert for_topic("avro", "orders", "value") == "avro"
        assert avro(declared=Named).write("orders", "value") == "avro_sr;full_name=Named;subject=Named"
        with pytest.raises(SchemaError, match="names subjects by the record"):
            for_topic("json_sr", "orders", "value")


def test_a_format_of_a_program_holds_no_login() -> None:
    with pytest.raises(SchemaError, match="cannot contain a login") as caught:
        avro("orders-value", registry="http://me:hidden@host:8081")
    assert "hidden" not in str(caught.value)
    assert avro("orders-value", registry="env:REGISTRY").write("orders", "value") == (
        "avro_sr;subject=orders-value;registry=env:REGISTRY"
    )


@dataclass
class Named:
    id: str
