"""Confluent's own serializers and deserializers, on the other side of a registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [])


def avro_writer(url: str, topic: str, schema: str, **config: Any) -> Callable[[Any], bytes]:
    """Return Confluent's serializer for the values of a topic."""
    serializer = AvroSerializer(SchemaRegistryClient({"url": url}), schema, conf=config)
    return lambda value: serializer(value, value_of(topic))


def avro_reader(url: str, topic: str) -> Callable[[bytes], Any]:
    deserializer = AvroDeserializer(SchemaRegistryClient({"url": url}))
    return lambda data: deserializer(data, value_of(topic))
