"""The CRC-32 of zlib, PNG and Ethernet, computed with the vector instructions of the processor: ten times as fast as by
`zlib`, and the same number."""

from __future__ import annotations

from zlib_ng.zlib_ng import crc32

__all__ = ["crc32"]
