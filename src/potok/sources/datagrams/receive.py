"""Receive many datagrams with one system call, and learn how many the kernel dropped."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
from typing import NamedTuple, Protocol

import numpy as np

AT_ONCE = 1024
SO_RXQ_OVFL = 40
"""Linux: the number of dropped datagrams is delivered with each received one."""

_SO_MEMINFO, _MEMINFO, _MEMINFO_DROPS = 55, struct.Struct("=9I"), 8
"""Linux: the same number at any time, also if nothing arrives after it."""

_CONTROL_BYTES = 64
_DROPS = struct.Struct("=I")
_TRUNCATED = 0x20


class Datagrams(NamedTuple):
    """Received datagrams, those that did not fit, and how many the kernel has dropped so far."""

    data: list[bytes]
    too_large: list[bytes]
    dropped: int | None


class Receiver(Protocol):
    def receive(self) -> Datagrams:
        """Wait for a datagram, and return all that are there. Raises `OSError` after the timeout of the socket."""
        ...

    def dropped(self) -> int | None:
        """Return how many datagrams the kernel has dropped so far; None if it does not say."""
        ...


def receiver_of(sock: socket.socket, max_bytes: int) -> Receiver:
    """Return the fastest receiver of this system."""
    if sys.platform == "linux":
        sock.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
        return _ManyAtOnce(sock, max_bytes)
    return _OneByOne(sock, max_bytes)


class _OneByOne:
    """The fallback: one system call per datagram; the kernel does not say what it dropped."""

    def __init__(self, sock: socket.socket, max_bytes: int) -> None:
        self._socket, self._max_bytes = sock, max_bytes

    def receive(self) -> Datagrams:
        data = self._socket.recv(self._max_bytes + 1)
        if len(data) > self._max_bytes:
            return Datagrams([], [data[: self._max_bytes]], None)
        return Datagrams([data], [], None)

    def dropped(self) -> int | None:
        return None


class _IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Header(ctypes.Structure):
    """`struct msghdr`."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.POINTER(_IoVec)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class _Message(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = [("header", _Header), ("received", ctypes.c_uint32)]


class _ManyAtOnce:
    """`recvmmsg` of Linux into one block of memory."""

    def __init__(self, sock: socket.socket, max_bytes: int) -> None:
        self._socket, self._max_bytes = sock, max_bytes
        libc = ctypes.CDLL(None, use_errno=True)
        self._recvmmsg = libc.recvmmsg
        self._block = ctypes.create_string_buffer(AT_ONCE * max_bytes)
        self._control = ctypes.create_string_buffer(AT_ONCE * _CONTROL_BYTES)
        self._view = memoryview(self._block).cast("B")
        self._vectors = (_IoVec * AT_ONCE)()
        self._messages = (_Message * AT_ONCE)()
        block, control = ctypes.addressof(self._block), ctypes.addressof(self._control)
        for number, (vector, message) in enumerate(zip(self._vectors, self._messages, strict=True)):
            vector.base, vector.length = block + number * max_bytes, max_bytes
            header = message.header
            header.vectors, header.vector_count = ctypes.pointer(vector), 1
            header.control, header.control_length = control + number * _CONTROL_BYTES, _CONTROL_BYTES
        self._size = ctypes.sizeof(_Message)
        self._headers = memoryview(self._messages).cast("B")
        self._fresh = bytes(self._headers)
        self._words = self._size // 4
        self._columns = [_Message.received.offset // 4, _Header.flags.offset // 4]

    def receive(self) -> Datagrams:
        count = self._wait()
        view, step, size = self._view, self._max_bytes, self._size
        headers = np.frombuffer(self._headers[: count * size], np.uint32).reshape(count, self._words)
        data: list[bytes] = []
        too_large: list[bytes] = []
        for number, (length, flags) in enumerate(headers[:, self._columns].tolist()):
            datagram = bytes(view[number * step : number * step + length])
            (too_large if flags & _TRUNCATED else data).append(datagram)
        dropped = self._dropped(count - 1)
        # The kernel overwrites the lengths of the control data; the next call needs them as they were.
        self._headers[: count * size] = self._fresh[: count * size]
        return Datagrams(data, too_large, dropped)

    def dropped(self) -> int | None:
        try:
            found = self._socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
        except OSError:
            return None
        return int(_MEMINFO.unpack(found)[_MEMINFO_DROPS]) if len(found) == _MEMINFO.size else None

    def _wait(self) -> int:
        # A first blocking peek respects the timeout of the socket, which recvmmsg does not.
        self._socket.recv(1, socket.MSG_PEEK)
        count = self._recvmmsg(self._socket.fileno(), ctypes.byref(self._messages), AT_ONCE, socket.MSG_DONTWAIT, None)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return int(count)

    def _dropped(self, number: int) -> int:
        """Read the kernel's counter from the control data of a message; 0 if nothing was dropped yet."""
        length = self._messages[number].header.control_length
        start = number * _CONTROL_BYTES
        control = bytes(memoryview(self._control)[start : start + length])
        at, header = 0, struct.Struct("@Nii")
        while at + header.size <= len(control):
            size, level, kind = header.unpack_from(control, at)
            if level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL:
                return int(_DROPS.unpack_from(control, at + header.size)[0])
            at += max((size + 7) & ~7, header.size)
        return 0
