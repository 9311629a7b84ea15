from __future__ import annotations

from pathlib import Path

import pytest

from potok.log.errors import BrokerNotSupported
from potok.log.kafka.errors import OptionError
from potok.log.kafka.java_options import connector_options
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.kafka.options import KafkaOptions
from potok.log.open import open_broker
from potok.settings import Settings

SECURE = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "anna",
    "sasl.password": "s3cr3t",
}


@pytest.mark.parametrize(
    ("url", "bootstrap"),
    [
        ("kafka://localhost:9092", "localhost:9092"),
        ("kafka://a:1,b:2", "a:1,b:2"),
        ("kafka://a,b/", "a:9092,b:9092"),
        ("kafka://[::1]:9093", "[::1]:9093"),
        ("kafka://[::1]", "[::1]:9092"),
        ("kafka://a:1?client.id=x&home=/tmp/h", "a:1"),
    ],
)
def test_a_url_names_one_broker_or_several(url: str, bootstrap: str) -> None:
    assert KafkaOptions.of_url(url).client()["bootstrap.servers"] == bootstrap


def test_the_query_of_a_url_holds_options_of_the_client_and_the_home() -> None:
    options = KafkaOptions.of_url("kafka://a?sasl.password=p%26q+r%3D&home=/tmp/here&linger.ms=5")
    assert options.client() == {"bootstrap.servers": "a:9092", "sasl.password": "p&q+r=", "linger.ms": "5"}
    assert options.home_path == Path("/tmp/here")


@pytest.mark.parametrize("url", ["kafka://", "kafka:", "kafka:localhost", "kafka://?a=b", "kafka://a:1/topic/x"])
def test_a_url_without_brokers_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(BrokerNotSupported, match=r"hint: write kafka://HOST:PORT"):
        KafkaOptions.of_url(url)


def test_a_password_before_the_host_is_refused_and_not_repeated() -> None:
    with pytest.raises(BrokerNotSupported, match=r"\?sasl\.username=") as raised:
        KafkaOptions.of_url("kafka://anna:s3cr3t@host:9092")
    assert "s3cr3t" not in str(raised.value)


def test_a_word_without_a_value_is_an_invalid_option() -> None:
    with pytest.raises(OptionError, match="option 1 in the URL"):
        KafkaOptions.of_url("kafka://a?verbose")


def test_the_url_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "potok.toml").write_text(
        '[kafka]\nsecurity.protocol = "SSL"\n"client.id" = "file"\n[kafka.sasl]\nusername = "file"\n'
    )
    environ = {"POTOK_KAFKA_CLIENT_ID": "environment", "POTOK_KAFKA_SASL_USERNAME": "environment"}
    settings = Settings.load(directory=tmp_path, environ=environ)
    assert settings.kafka == {
        "security.protocol": "SSL",
        "client.id": "environment",
        "sasl.username": "environment",
    }
    broker = KafkaBroker.at(f"kafka://a?sasl.username=url&home={tmp_path}", settings)
    assert broker.options.client() == {
        "bootstrap.servers": "a:9092",
        "security.protocol": "SSL",
        "client.id": "environment",
        "sasl.username": "url",
    }


def test_secrets_are_in_no_text_that_is_shown(tmp_path: Path) -> None:
    secrets = {"sasl.password": "AAA1", "ssl.key.pem": "BBB2", "sasl.oauthbearer.client.secret": "CCC3"}
    query = "&".join(f"{name}={value}" for name, value in secrets.items())
    settings = Settings.load(directory=tmp_path, environ={"POTOK_KAFKA_SSL_KEYSTORE_PASSWORD": "DDD4"})
    broker = KafkaBroker.at(f"kafka://a:1?client.id=me&{query}&home={tmp_path}", settings)
    rendered = f"{broker} {broker!r} {broker.url} {broker.options!r} {settings!r}"
    for value in (*secrets.values(), "DDD4"):
        assert value not in rendered
    assert "client.id=me" in broker.url
    assert "sasl.password=***" in broker.url
    assert broker.options.hide("login of AAA1 failed") == "login of *** failed"


def test_a_refused_url_is_repeated_without_its_secrets() -> None:
    with pytest.raises(BrokerNotSupported) as raised:
        KafkaOptions.of_url("kafka://?sasl.password=AAA1&client.id=me")
    assert "AAA1" not in str(raised.value)
    assert "client.id=me" in str(raised.value)


def test_options_that_are_equal_are_one_broker(tmp_path: Path) -> None:
    first = KafkaBroker.at(f"kafka://a:1?b=1&c=2&home={tmp_path}", Settings())
    assert KafkaBroker.at(f"kafka://a:1?c=2&b=1&home={tmp_path}", Settings()) is first
    assert KafkaBroker.at(f"kafka://a:1?c=3&b=1&home={tmp_path}", Settings()) is not first


def test_a_password_becomes_the_login_of_the_java_client() -> None:
    reported = connector_options(KafkaOptions(("a:1", "b:2"), {**SECURE, "sasl.password": 'x"\\y', "linger.ms": "5"}))
    assert reported == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="anna" password="x\\"\\\\y";',
    }


def test_scram_has_another_login_and_its_own_mechanism() -> None:
    reported = connector_options(KafkaOptions(("a:1",), {**SECURE, "sasl.mechanism": "SCRAM-SHA-512"}))
    assert reported["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert ".scram.ScramLoginModule required" in reported["kafka.sasl.jaas.config"]


def test_certificates_become_stores_of_pem(tmp_path: Path) -> None:
    for name in ("ca", "own", "key"):
        (tmp_path / name).write_text(f"PEM of {name}")
    values = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.certificate.location": str(tmp_path / "own"),
        "ssl.key.location": str(tmp_path / "key"),
        "ssl.key.password": "pass",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert connector_options(KafkaOptions(("a:1",), values)) == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.key.password": "pass",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(tmp_path / "ca"),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "PEM of own",
        "kafka.ssl.keystore.key": "PEM of key",
        "kafka.ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.ssl.certificate.verification", "false"),
        ("sasl.mechanism", "OAUTHBEARER"),
        ("ssl.ca.location", "/etc/no/such/directory"),
    ],
)
def test_security_that_java_cannot_have_is_not_lessened_in_silence(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(OptionError, match=name):
        connector_options(KafkaOptions(("a:1",), {name: value}))
    assert KafkaBroker(KafkaOptions(("a:1",), {name: value}), tmp_path).connector_options() == {}


@pytest.mark.parametrize(
    "url",
    [
        "kafka://?home=redis://:s3cr3t@host/0",
        "kafka:///x?home=postgresql://anna:s3cr3t@host/db",
        "kafka:/x?home=postgresql://host/db%3Fpassword=s3cr3t",
        "kafka:anna:s3cr3t@host:9092",
        "kafkas://host?sasl.password=s3cr3t",
        "kafkas://anna:s3cr3t@host",
    ],
)
def test_a_url_that_cannot_be_opened_is_shown_without_its_secrets(url: str) -> None:
    with pytest.raises(BrokerNotSupported) as raised:
        open_broker(url)
    assert "s3cr3t" not in str(raised.value)
