"""Names for annotations, where Faust has abstract classes: `async def count(orders: StreamT[Order])`."""

from potok.app.agent import Agent as AgentT
from potok.app.app import App as AppT
from potok.app.channel import Channel as ChannelT
from potok.app.codecs import Codec as CodecT
from potok.app.event import TP, Message
from potok.app.event import Event as EventT
from potok.app.fields import FieldDescriptor as FieldDescriptorT
from potok.app.record import Record as ModelT
from potok.app.schema import Schema as SchemaT
from potok.app.sending import Sent as RecordMetadata
from potok.app.service import Service as ServiceT
from potok.app.stream import Stream as StreamT
from potok.app.tables import Table as TableT
from potok.app.topic import Topic as TopicT

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
