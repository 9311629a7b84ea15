"""Names for annotations, where Faust has abstract classes: `async def count(orders: StreamT[Order])`."""

from potok.faust.agent import Agent as AgentT
from potok.faust.app import App as AppT
from potok.faust.messaging.channel import Channel as ChannelT
from potok.faust.messaging.event import Event as EventT
from potok.faust.messaging.message import TP, Message
from potok.faust.messaging.sending import Sent as RecordMetadata
from potok.faust.messaging.topic import Topic as TopicT
from potok.faust.records.codecs import Codec as CodecT
from potok.faust.records.codecs import Schema as SchemaT
from potok.faust.records.fields import FieldDescriptor as FieldDescriptorT
from potok.faust.records.record import Record as ModelT
from potok.faust.services.service import Service as ServiceT
from potok.faust.stream import Stream as StreamT
from potok.faust.tables.tables import Table as TableT

__all__ = [
    "TP",
    "AgentT",
    "AppT",
    "ChannelT",
    "CodecT",
    "EventT",
    "FieldDescriptorT",
    "Message",
    "ModelT",
    "RecordMetadata",
    "SchemaT",
    "ServiceT",
    "StreamT",
    "TableT",
    "TopicT",
]


def __dir__() -> list[str]:
    return sorted(__all__)
