"""Receive messages of ZeroMQ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from potok.sources.listener import CannotListen, Listener, ListenerContext
from potok.sources.messages.sockets import AT_ONCE, Frames, SocketListener, SocketSpec, address_of

_LOOK_MS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroMq(SocketSpec):
    """Messages of ZeroMQ, one record each: the last frame is the value. ZeroMQ has no acknowledgements, so messages
    that are not in the log when the gateway is killed are lost. When the buffer is full, `block` stops reading: PUSH
    sockets wait, and PUB sockets drop messages, which `sequence` counts.
    """

    kind: ClassVar[str] = "zeromq"
    extra: ClassVar[str | None] = "zeromq"

    def open(self, context: ListenerContext) -> Listener:
        return ZeroMqListener(self, context)


class ZeroMqListener(SocketListener):
    def __init__(self, spec: ZeroMq, context: ListenerContext) -> None:
        import zmq

        super().__init__(spec, context)
        self._context_of_zmq = zmq.Context()
        self._socket = self._context_of_zmq.socket(zmq.PULL if spec.pattern == "pull" else zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, spec.high_water_mark)
        self._socket.setsockopt(zmq.MAXMSGSIZE, spec.max_message)
        if spec.pattern == "sub":
            for prefix in spec.subscribe:
                self._socket.subscribe(prefix)
        try:
            if spec.listen is not None:
                self._socket.bind(spec.listen)
                self.address = address_of(self._socket.getsockopt_string(zmq.LAST_ENDPOINT))
            for endpoint in spec.connect:
                self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            where = spec.listen or ", ".join(spec.connect)
            raise CannotListen(spec.name, where, str(error)) from error

    def close(self) -> None:
        self._socket.close()
        self._context_of_zmq.term()

    def receive(self) -> list[Frames]:
        import zmq

        found: list[Frames] = []
        if not self._socket.poll(_LOOK_MS):
            return found
        try:
            while len(found) < AT_ONCE:
                found.append(self._socket.recv_multipart(zmq.NOBLOCK))
        except zmq.Again:
            pass
        return found
