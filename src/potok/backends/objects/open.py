"""Open the client of a location: one per process, since its threads do not survive a fork."""

from __future__ import annotations

import os
import threading

from potok.backends.objects.directory import DirectoryClient
from potok.backends.objects.object_client import ObjectClient
from potok.backends.state_url import Where

_open: dict[tuple[int, str], ObjectClient] = {}
_guard = threading.Lock()


def object_client(where: Where) -> ObjectClient:
    """Return the client of this process for a location."""
    with _guard:
        key = (os.getpid(), where.url)
        if key not in _open:
            _open[key] = _client(where)
        return _open[key]


def _client(where: Where) -> ObjectClient:
    directory = where.shared_directory
    if directory is not None:
        return DirectoryClient(str(where), directory)
    where.need_driver()
    from potok.backends.objects.bucket import BucketClient

    return BucketClient(str(where), where.parts)
