"""Each datagram becomes one record: UDP unicast and multicast."""

from __future__ import annotations

import ipaddress
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from potok.errors import TopologyError
from potok.sources.arrival import Arrival
from potok.sources.counters import TOO_LARGE
from potok.sources.datagrams.receive import Datagrams, Receiver, receiver_of
from potok.sources.listener import Address, CannotListen, Listener, ListenerContext, ListenerSpec, option

LARGEST = 65_507
"""The most bytes of a datagram that UDP can carry over IPv4."""

_LOOK_S = 0.2
_DRAIN_S = 2.0

_logger = logging.getLogger("potok.sources")

Convert = Callable[[Sequence[bytes], ListenerContext], Arrival | None]
"""Make records of datagrams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Udp(ListenerSpec):
    """Datagrams, one record each. UDP gives senders no feedback, so what does not fit is dropped and counted."""

    kind: ClassVar[str] = "udp"

    listen: str = option("HOST:PORT to receive on; with `group`, HOST is the interface.")
    group: str | None = option("A multicast group to join.", default=None)
    sockets: int = option("Sockets that share the port, each with a thread.", default=1)
    receive_buffer: int = option("Bytes of the kernel's receive buffer to ask for.", default=8 << 20)
    max_datagram: int = option(
        "Maximum size of a datagram in bytes; a larger one is lost as `too_large`.", default=8_192
    )

    def check(self) -> None:
        ListenerSpec.check(self)
        Address.of(self.listen)
        self.overload.allow(("drop_newest", "drop_oldest"), "UDP has no flow control")
        if self.group is not None:
            _multicast(self.group)
        for name, most in (("sockets", 64), ("max_datagram", LARGEST)):
            number = getattr(self, name)
            if not 1 <= number <= most:
                raise TopologyError(f"{name} = {number} is out of range", hint=f"write a number from 1 to {most}")

    def open(self, context: ListenerContext) -> Listener:
        return DatagramListener(self, context, one_record_each)


def one_record_each(data: Sequence[bytes], _: ListenerContext) -> Arrival:
    batch = pa.record_batch([pa.array(data, pa.binary())], names=["value"])
    return Arrival(batch, sum(map(len, data)))


class DatagramListener(Listener):
    """Sockets on one port, each read by a thread."""

    def __init__(self, spec: Udp, context: ListenerContext, convert: Convert) -> None:
        self._context, self._convert = context, convert
        self._stopping = threading.Event()
        self._sockets: list[socket.socket] = []
        address = Address.of(spec.listen)
        try:
            for _ in range(spec.sockets):
                opened = _open(address, spec, shared=spec.sockets > 1)
                self._sockets.append(opened)
                address = Address(address.host, opened.getsockname()[1])
        except (OSError, OverflowError) as error:
            self.close()
            why = getattr(error, "strerror", None) or str(error)
            raise CannotListen(spec.name, address, why) from error
        self.address = address
        self.receive_buffer = min(s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for s in self._sockets) // 2
        if self.receive_buffer < spec.receive_buffer:
            _logger.warning(
                'listener "%s": the kernel grants a receive buffer of %d bytes instead of %d; to change that: '
                "sysctl -w net.core.rmem_max=%d",
                spec.name,
                self.receive_buffer,
                spec.receive_buffer,
                spec.receive_buffer,
            )
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(number, opened, receiver_of(opened, spec.max_datagram)),
                name=f"potok-udp-{spec.name}",
                daemon=True,
            )
            for number, opened in enumerate(self._sockets)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def close(self) -> None:
        for opened in self._sockets:
            opened.close()

    def state(self) -> dict[str, Any]:
        return {"receive_buffer": self.receive_buffer, "sockets": len(self._sockets)}

    def _run(self, number: int, opened: socket.socket, receiver: Receiver) -> None:
        while not self._stopping.is_set():
            try:
                found = receiver.receive()
            except (TimeoutError, BlockingIOError):
                # The kernel says what it dropped with the next datagram, and there may be none.
                self._count(number, receiver.dropped())
                continue
            self._hand_over(number, found)
        self._drain(number, opened, receiver)

    def _drain(self, number: int, opened: socket.socket, receiver: Receiver) -> None:
        """Hand over what the kernel has received, so that it is not lost uncounted."""
        # A socket that is connected receives from its peer alone, and here the peer is itself.
        with suppress(OSError):
            opened.connect(opened.getsockname())
        opened.setblocking(False)
        end = time.monotonic() + _DRAIN_S
        with suppress(OSError):
            while time.monotonic() < end:
                self._hand_over(number, receiver.receive())
        self._count(number, receiver.dropped())

    def _count(self, number: int, dropped: int | None) -> None:
        if dropped is not None:
            self._context.counters.kernel_dropped(number, dropped)

    def _hand_over(self, number: int, found: Datagrams) -> None:
        context = self._context
        self._count(number, found.dropped)
        if found.too_large:
            context.lose(found.too_large, TOO_LARGE, "the datagram is larger than max_datagram")
        if found.data:
            arrival = self._convert(found.data, context)
            if arrival is not None:
                context.buffer.offer(arrival)


def _open(address: Address, spec: Udp, *, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if shared:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, spec.receive_buffer)
        if spec.group is None:
            opened.bind(address)
        else:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Bound to the group, so that datagrams to other addresses of this port are not received.
            opened.bind((spec.group, address.port))
            _join(opened, spec.group, address.host)
        opened.settimeout(_LOOK_S)
    except BaseException:
        opened.close()
        raise
    return opened


def _join(opened: socket.socket, group: str, interface: str) -> None:
    if opened.family == socket.AF_INET6:
        index = socket.if_nametoindex(interface.partition("%")[2]) if "%" in interface else 0
        packed = socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", index)
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, packed)
    else:
        packed = socket.inet_aton(group) + socket.inet_aton(interface)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, packed)


def _multicast(group: str) -> None:
    try:
        multicast = ipaddress.ip_address(group).is_multicast
    except ValueError:
        multicast = False
    if not multicast:
        hint = "use an address from 224.0.0.0/4 or ff00::/8"
        raise TopologyError(f'"{group}" is not a multicast group', hint=hint)
