"""How Kafka's client can log in, as it was built."""

from __future__ import annotations

from functools import cache

from confluent_kafka import KafkaException, Producer


@cache
def has_mechanism(name: str) -> bool:
    """Whether the client of this machine knows a mechanism of SASL: it says so when it is set up. An address that
    nobody can have lets it connect to nobody."""
    given = {"bootstrap.servers": "0.0.0.0:1", "log_level": "0", "sasl.username": "nobody", "sasl.password": "nothing"}
    try:
        Producer({**given, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": name})
    except KafkaException:
        return False
    return True
