"""Translate the options of librdkafka into those of Kafka's Java client, for Spark's connector."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from potok.log.kafka.errors import OptionError
from potok.log.kafka.options import KafkaOptions

PREFIX = "kafka."
"""Spark passes options with this prefix to Kafka."""

_SAME = (
    "client.id",
    "client.rack",
    "client.dns.lookup",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.kerberos.service.name",
    "ssl.key.password",
)
"""Options with the same meaning in both clients."""

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def connector_options(options: KafkaOptions) -> dict[str, str]:
    """Return the options of Spark's reader and writer of the format `kafka`.

    Options that only tune librdkafka are omitted. If Java cannot provide the requested security, `OptionError` is
    raised: connecting with less would be worse than not connecting.
    """
    given = options.values
    java_options = {"bootstrap.servers": options.bootstrap}
    java_options |= {name: given[name] for name in _SAME if name in given}
    if "security.protocol" in given:
        java_options["security.protocol"] = given["security.protocol"].upper()
    if "socket.timeout.ms" in given:
        java_options["request.timeout.ms"] = given["socket.timeout.ms"]
    java_options |= _sasl(given) | _trust(given) | _identity(given) | _host_check(given)
    return {PREFIX + name: value for name, value in java_options.items()}


def _sasl(given: Mapping[str, str]) -> dict[str, str]:
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", ""))
    if not mechanism:
        return {}
    java_options = {"sasl.mechanism": mechanism}
    if "sasl.username" in given:
        module = _LOGIN_MODULES.get(mechanism.upper())
        if module is None:
            raise _impossible("sasl.mechanism", mechanism)
        name, password = _quoted(given["sasl.username"]), _quoted(given.get("sasl.password", ""))
        java_options["sasl.jaas.config"] = f"{module} required username={name} password={password};"
    elif mechanism.upper() != "GSSAPI":
        raise _impossible("sasl.mechanism", mechanism)
    return java_options


def _trust(given: Mapping[str, str]) -> dict[str, str]:
    if "ssl.ca.pem" in given:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": given["ssl.ca.pem"]}
    path = given.get("ssl.ca.location", "probe")
    if path == "probe":
        return {}
    if not Path(path).is_file():
        raise _impossible("ssl.ca.location", path)
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": path}


def _identity(given: Mapping[str, str]) -> dict[str, str]:
    if "ssl.keystore.location" in given:
        java_options = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": given["ssl.keystore.location"]}
        if "ssl.keystore.password" in given:
            java_options["ssl.keystore.password"] = given["ssl.keystore.password"]
        return java_options
    certificate, key = _pem(given, "ssl.certificate"), _pem(given, "ssl.key")
    if not certificate or not key:
        return {}
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": key,
    }


def _pem(given: Mapping[str, str], name: str) -> str:
    if f"{name}.pem" in given:
        return given[f"{name}.pem"]
    path = given.get(f"{name}.location", "")
    return Path(path).read_text() if path else ""


def _host_check(given: Mapping[str, str]) -> dict[str, str]:
    if given.get("enable.ssl.certificate.verification", "true").lower() in ("false", "0", "no"):
        raise _impossible("enable.ssl.certificate.verification", "false")
    algorithm = given.get("ssl.endpoint.identification.algorithm")
    if algorithm is None:
        return {}
    return {"ssl.endpoint.identification.algorithm": "" if algorithm == "none" else algorithm}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _impossible(name: str, value: str) -> OptionError:
    return OptionError(
        f'"{name}" cannot be "{value}" for Spark\'s connector to Kafka',
        hint="records are read without the connector then, which is slower",
    )
