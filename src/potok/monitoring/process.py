"""Metrics of this process, by the names that every Prometheus client uses."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from potok.monitoring import families
from potok.monitoring.scrape import Scrape
from potok.version import __version__

_STARTED_AT = time.time()
_PROC = Path("/proc/self")


def collect_process(scrape: Scrape) -> None:
    times = os.times()
    scrape.add(families.BUILD_INFO, 1, __version__)
    scrape.add(families.CPU_SECONDS, times.user + times.system)
    scrape.add(families.START_TIME, _STARTED_AT)
    scrape.add(families.MAX_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    try:
        resident = int((_PROC / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        descriptors = len(os.listdir(_PROC / "fd"))
    except OSError:
        # Not Linux.
        return
    scrape.add(families.RESIDENT_BYTES, resident)
    scrape.add(families.OPEN_FDS, descriptors)
