"""Credentials of Faust, as Kafka's client gets them."""

from __future__ import annotations

import pickle
import ssl
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import potok.faust as faust
from potok.faust.settings.credentials import CannotLogIn
from potok.log.kafka import options
from potok.log.kafka.kafka_broker import KafkaBroker

BROKER = "kafka://localhost:9092"


def reported(**options: Any) -> dict[str, str]:
    return dict(faust.App("app", broker=BROKER, **options).settings(directory="/nowhere", environ={}).kafka)


def test_a_user_and_a_password_become_options_of_kafka() -> None:
    given = faust.SASLCredentials(username="ann", password="pass+word")
    assert reported(broker_credentials=given) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "pass+word",
    }
    assert "pass" not in repr(given)


def test_a_context_of_ssl_brings_its_certificates_and_encrypts_the_login(certificate: Path) -> None:
    context = ssl.create_default_context(cafile=str(certificate))
    found = reported(
        broker_credentials=faust.SASLCredentials(username="a", password="b", ssl_context=context, mechanism="PLAIN")
    )
    assert found["security.protocol"] == "SASL_SSL"
    assert found["ssl.endpoint.identification.algorithm"] == "https"
    assert ssl.PEM_cert_to_DER_cert(found["ssl.ca.pem"]) == ssl.PEM_cert_to_DER_cert(certificate.read_text())
    assert reported(ssl_context=context) == reported(broker_credentials=context)
    assert reported(ssl_context=context)["security.protocol"] == "SSL"


def test_a_context_that_trusts_everybody_says_so() -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    assert reported(broker_credentials=faust.SSLCredentials(context)) == {
        "security.protocol": "SSL",
        "enable.ssl.certificate.verification": "false",
    }


def test_certificates_have_one_source(certificate: Path) -> None:
    by_file = reported(broker_credentials=faust.SSLCredentials(cafile=str(certificate)))
    assert by_file == {"security.protocol": "SSL", "ssl.ca.location": str(certificate)}
    by_data = reported(broker_credentials=faust.SSLCredentials(cadata=certificate.read_text()))
    assert by_data["ssl.ca.pem"] == certificate.read_text()
    with pytest.raises(CannotLogIn, match="one location"):
        reported(broker_credentials=faust.SSLCredentials(cafile="a", capath="b"))


def test_kerberos_is_refused_where_the_client_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "has_mechanism", lambda name: False)
    with pytest.raises(CannotLogIn, match="built without GSSAPI") as raised:
        reported(broker_credentials=faust.GSSAPICredentials())
    assert "libsasl2" in (raised.value.hint or "")
    monkeypatch.setattr(options, "has_mechanism", lambda name: True)
    found = reported(broker_credentials=faust.GSSAPICredentials(kerberos_service_name="log"))
    assert (found["sasl.mechanism"], found["sasl.kerberos.service.name"]) == ("GSSAPI", "log")


def test_unknown_credentials_are_refused_where_the_app_is_made() -> None:
    with pytest.raises(CannotLogIn, match="broker_credentials cannot be a str"):
        faust.App("app", broker_credentials="secret")


def test_the_log_of_an_app_is_opened_with_its_credentials_and_agents_carry_none() -> None:
    app = faust.App("app", broker=BROKER, broker_credentials=faust.SASLCredentials(username="ann", password="secret"))
    log = app.log()
    assert isinstance(log, KafkaBroker)
    assert log.options.values["sasl.password"] == "secret"
    assert b"secret" not in cloudpickle.dumps(app)
    assert pickle.loads(cloudpickle.dumps(app)).kafka == {}


def test_the_client_says_which_mechanisms_it_has() -> None:
    options.has_mechanism.cache_clear()
    assert options.has_mechanism("PLAIN")
    assert not options.has_mechanism("NONE-SUCH")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """One that signs itself."""
    place = tmp_path / "ca.pem"
    place.write_text(PEM)
    return place


PEM = """\
-----BEGIN CERTIFICATE-----
MIIBgjCCASegAwIBAgIUb2jGkpI/tvhyWPMZrNOAISNwdMwwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKcG90b2sgdGVzdDAgFw0yNjExMTYxNDU2NDlaGA8yMTI2MTAy
MzE0NTY0OVowFTETMBEGA1UEAwwKcG90b2sgdGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABGy3u+E8S/yKE/uwXFdS7TlISs4nT7coy/q/ZpgOaFn5QImtZDog
Hiavwk5VI2P1nGcPO2xkQRGswnqFzmKLX8+jUzBRMB0GA1UdDgQWBBTE4lPNcmnP
eYFiIHeZ7syX79nTjzAfBgNVHSMEGDAWgBTE4lPNcmnPeYFiIHeZ7syX79nTjzAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCiNfy3puK26DmRZJfr
nNRjDNLAkACadNFPtAyPbai18AIhAIrnszd1Gev/hzCWfURixTZOMn53at7Rg7vK
1NjMgX+l
-----END CERTIFICATE-----
"""
