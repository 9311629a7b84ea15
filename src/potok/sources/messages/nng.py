"""Receive messages of NNG and nanomsg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from potok.sources.listener import CannotListen, Listener, ListenerContext
from potok.sources.messages.sockets import AT_ONCE, Frames, SocketListener, SocketSpec, address_of

_LOOK_MS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Nng(SocketSpec):
    """Messages of NNG or nanomsg, one record each. The protocols have no acknowledgements, so messages that are not in
    the log when the gateway is killed are lost. When the buffer is full, `block` stops reading: PUSH sockets wait, and
    PUB sockets drop messages, which `sequence` counts. A message has one frame.
    """

    kind: ClassVar[str] = "nng"
    extra: ClassVar[str | None] = "nng"

    def open(self, context: ListenerContext) -> Listener:
        return NngListener(self, context)


class NngListener(SocketListener):
    def __init__(self, spec: Nng, context: ListenerContext) -> None:
        import pynng

        super().__init__(spec, context)
        self._socket: pynng.Socket = pynng.Pull0() if spec.pattern == "pull" else pynng.Sub0()
        self._socket.recv_timeout = _LOOK_MS
        self._socket.recv_max_size = spec.max_message
        self._socket.recv_buffer_size = min(spec.high_water_mark, 8_192)
        if isinstance(self._socket, pynng.Sub0):
            for prefix in spec.subscribe:
                self._socket.subscribe(prefix)
        try:
            if spec.listen is not None:
                listener = self._socket.listen(spec.listen)
                self.address = address_of(listener.url)
            for endpoint in spec.connect:
                self._socket.dial(endpoint, block=False)
        except pynng.NNGException as error:
            self.close()
            raise CannotListen(spec.name, spec.listen or ", ".join(spec.connect), str(error)) from error

    def close(self) -> None:
        self._socket.close()

    def receive(self) -> list[Frames]:
        import pynng

        found: list[Frames] = []
        try:
            found.append([self._socket.recv()])
            while len(found) < AT_ONCE:
                found.append([self._socket.recv(block=False)])
        except (pynng.Timeout, pynng.TryAgain):
            pass
        return found
