"""Compute the CRC-32 of zlib, PNG and Ethernet with vector instructions, ten times as fast as `zlib.crc32`."""

from __future__ import annotations

from zlib_ng.zlib_ng import crc32

__all__ = ["crc32"]
