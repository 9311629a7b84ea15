"""Count the messages that never arrived, by the numbers that their senders give them."""

from __future__ import annotations

from collections import OrderedDict

from potok.sources.counters import Counters

MOST_SENDERS = 10_000


class Sequence:
    """The last number of each sender. A smaller number than expected means that the sender began again."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._last: OrderedDict[str, int] = OrderedDict()
        counters.missing(0)

    def arrived(self, sender: str, number: int) -> None:
        """Note a message; its sender has sent all smaller numbers before."""
        last = self._last.get(sender)
        if last is not None and number > last + 1:
            self._counters.missing(number - last - 1)
        self._last[sender] = number
        self._last.move_to_end(sender)
        if len(self._last) > MOST_SENDERS:
            self._last.popitem(last=False)
