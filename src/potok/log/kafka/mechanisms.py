"""The SASL mechanisms that Kafka's client was built with."""

from __future__ import annotations

from functools import cache

from confluent_kafka import KafkaException, Producer


@cache
def has_mechanism(name: str) -> bool:
    """Return whether the client supports a SASL mechanism, which it checks at its creation. The address is invalid,
    so it never connects."""
    given = {"bootstrap.servers": "0.0.0.0:1", "log_level": "0", "sasl.username": "nobody", "sasl.password": "nothing"}
    try:
        Producer({**given, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": name})
    except KafkaException:
        return False
    return True
