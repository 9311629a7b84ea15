"""Confluent's own serializers and deserializers, on the other side of a registry.

With `in_header`, the id of the schema is in a header of the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Written = tuple[bytes, dict[str, bytes]]
"""The bytes of a value, and the headers of its record."""

Writer = Callable[[Any], Written]


def client(url: str) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": url})


def value_of(topic: str, headers: list[Any] | None = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [] if headers is None else headers)


def _id_in_header(payload: bytes, context: Any, schema_id: Any) -> bytes:
    """Write the id, as a function in Confluent's configuration may: its own writes a GUID, and Apicurio has none."""
    number: bytes = schema_id.id_to_bytes()
    context.headers.append(("__value_schema_id", number))
    return payload


def _config(in_header: bool, config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "schema.id.serializer": _id_in_header} if in_header else config


def _writer(serializer: Any, topic: str) -> Writer:
    def write(value: Any) -> Written:
        context = value_of(topic)
        data = serializer(value, context)
        return data, dict(context.headers)

    return write


def avro_writer(url: str, topic: str, schema: str, *, in_header: bool = False, **config: Any) -> Writer:
    """Return Confluent's serializer for the values of a topic."""
    return _writer(AvroSerializer(client(url), schema, conf=_config(in_header, config)), topic)


def json_writer(url: str, topic: str, schema: str, *, in_header: bool = False, **config: Any) -> Writer:
    return _writer(JSONSerializer(schema, client(url), conf=_config(in_header, config)), topic)


def proto_writer(url: str, topic: str, message: Any, *, in_header: bool = False, **config: Any) -> Writer:
    return _writer(ProtobufSerializer(message, client(url), conf=_config(in_header, config)), topic)


def avro_reader(url: str, topic: str) -> Callable[[bytes], Any]:
    deserializer = AvroDeserializer(client(url))
    return lambda data: deserializer(data, value_of(topic))


def json_reader(url: str, topic: str) -> Callable[[bytes], Any]:
    deserializer = JSONDeserializer(None, schema_registry_client=client(url))
    return lambda data: deserializer(data, value_of(topic))


def proto_reader(topic: str, message: Any) -> Callable[[bytes], Any]:
    # Without a client: Apicurio answers format=serialized with bytes, where Confluent's expects base64.
    deserializer = ProtobufDeserializer(message, {"use.deprecated.format": False})
    return lambda data: deserializer(data, value_of(topic))


def messages(fields: dict[str, tuple[int, str, bool]], *, package: str, name: str) -> Any:
    """Return the class of a message, behind another one in its file, with scalar fields: number, type, and whether it
    is repeated."""
    made = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{name.lower()}.proto", package=package, syntax="proto3")
    file.message_type.add(name=f"Before{name}").field.add(name="x", number=1, type=made.TYPE_INT32, label=1)
    message = file.message_type.add(name=name)
    for field, (number, type_, repeated) in fields.items():
        label = made.LABEL_REPEATED if repeated else made.LABEL_OPTIONAL
        message.field.add(name=field, number=number, type=getattr(made, f"TYPE_{type_}"), label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
