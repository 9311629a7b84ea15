"""Connect to RabbitMQ."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

CONNECT_S = 10.0


async def open_amqp(url: str) -> AbstractConnection:
    """Open a plain connection, without supervision."""
    import aio_pika

    client = logging.getLogger("aiormq")
    if client.level == logging.NOTSET:
        # It logs a traceback for each attempt to reach a server that is away; Potok reports the cause, once.
        client.setLevel(logging.CRITICAL)
    return await aio_pika.connect(url, timeout=CONNECT_S)
