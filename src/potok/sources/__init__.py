"""What lands in topics from outside: listeners for input that cannot be replayed, and captures of databases."""

from __future__ import annotations

from potok.sources.cdc.config import load_captures
from potok.sources.cdc.progress import CaptureStatus
from potok.sources.cdc.runner import CaptureRunner, captured
from potok.sources.config import load_gateway
from potok.sources.counters import Counts
from potok.sources.datagrams.statsd import Statsd
from potok.sources.datagrams.tables import StatsdTables, statsd_tables
from potok.sources.datagrams.udp import Udp
from potok.sources.gateway import Gateway, ListenerStatus
from potok.sources.messages.mqtt import Mqtt
from potok.sources.messages.nng import Nng
from potok.sources.messages.rabbitmq import RabbitMq
from potok.sources.messages.zeromq import ZeroMq
from potok.sources.overload import Overload
from potok.sources.polling.growing_files import GrowingFiles
from potok.sources.polling.http_poll import HttpPoll
from potok.sources.tcp_lines import TcpLines
from potok.sources.webhooks.webhook import Webhook
from potok.topology.capture import Capture

__all__ = [
    "Capture",
    "CaptureRunner",
    "CaptureStatus",
    "Counts",
    "Gateway",
    "GrowingFiles",
    "HttpPoll",
    "ListenerStatus",
    "Mqtt",
    "Nng",
    "Overload",
    "RabbitMq",
    "Statsd",
    "StatsdTables",
    "TcpLines",
    "Udp",
    "Webhook",
    "ZeroMq",
    "captured",
    "load_captures",
    "load_gateway",
    "statsd_tables",
]
