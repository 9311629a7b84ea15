"""The program in Faust, with a thread that says how far it is, by the figures that Faust keeps anyway."""

import logging
import sys
import threading
import time
from typing import Any

from orders import app

LOOK_S = 0.2

out = sys.stdout
"""Kept from before the worker turns what is printed into lines of its log."""


def tell(monitor: Any) -> None:
    """A line for each look: "DONE", the time, and how many records all agents are through with."""
    known, agents = 0, len(app.agents)
    while True:
        time.sleep(LOOK_S)
        done = (monitor.events_total - monitor.events_active) // agents
        if done != known:
            known = done
            print("DONE", time.monotonic(), done, file=out, flush=True)


@app.task
async def watch() -> None:
    """The monitor belongs to the loop of the worker: looked up in the thread it would be made there."""
    threading.Thread(target=tell, args=(app.monitor,), daemon=True).start()


# It would write down each message that it sends for nobody to read.
logging.getLogger("aiokafka").setLevel(logging.WARNING)
app.main()
