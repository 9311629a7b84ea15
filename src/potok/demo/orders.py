"""Write orders continuously: `python -m potok.demo.orders URL --rate 3000`."""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import threading
import time
from collections.abc import Callable

import orjson

from potok.clock import now_ms
from potok.demo.shop import CITIES, FIRST_NAMES, GOODS, GRACE, LAST_NAMES, ORDERS, POPULARITY, WINDOW
from potok.duration import to_ms
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord

USERS = 2_000
LATE = 0.01
MALFORMED = 0.005
TICK_SECONDS = 0.1
TIDY_SECONDS = 30
TOO_LATE_MS = to_ms(WINDOW) + to_ms(GRACE)


class Shop:
    """Creates orders; the same seed creates the same ones."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        names = [f"{first}.{last}" for first in FIRST_NAMES.split() for last in LAST_NAMES.split()]
        self.users = self._random.sample(names, USERS)
        homes = self._random.choices(list(CITIES), weights=list(CITIES.values()), k=USERS)
        self._home = dict(zip(self.users, homes, strict=True))
        # A few users buy often and most rarely: the weight of a user falls with the rank, as in Zipf's law.
        self._activity = list(itertools.accumulate((rank + 8) ** -0.85 for rank in range(USERS)))
        self._goods = list(GOODS)
        self._popularity = list(itertools.accumulate(POPULARITY))
        self._number = 0

    def orders(self, count: int, now_ms: int) -> list[LogRecord]:
        """Return `count` orders with the current time, including a few invalid or late ones."""
        users = self._random.choices(self.users, cum_weights=self._activity, k=count)
        return [self._record(user, now_ms) for user in users]

    def _record(self, user: str, now_ms: int) -> LogRecord:
        order = self._order(user)
        chance = self._random.random()
        value = self._malformed(order) if chance < MALFORMED else orjson.dumps(order)
        key = str(order["order_id"]).encode()
        return LogRecord(key, value, self._ordered_at(now_ms, late=chance > 1 - LATE))

    def _order(self, user: str) -> dict[str, object]:
        self._number += 1
        size = min(5, 1 + int(self._random.expovariate(1.1)))
        items = self._random.choices(self._goods, cum_weights=self._popularity, k=size)
        return {
            "order_id": f"o-{self._number:07d}",
            "user_id": user,
            "city": self._home[user],
            "amount": round(sum(GOODS[item] for item in items), 2),
            "items": items,
        }

    def _ordered_at(self, now_ms: int, *, late: bool) -> int:
        if late:
            # A late order, as from a phone that was off: its window is closed, wherever in the window its time
            # is.
            return now_ms - TOO_LATE_MS - self._random.randrange(10_000, 120_000)
        return now_ms - min(1_500, int(self._random.expovariate(1 / 200)))

    def _malformed(self, order: dict[str, object]) -> bytes:
        kind = self._random.randrange(3)
        if kind == 0:
            text = orjson.dumps(order)
            return text[: self._random.randrange(10, len(text) - 1)]
        if kind == 1:
            return orjson.dumps({**order, "amount": "a lot"})
        missing = self._random.choice(["user_id", "amount"])
        return orjson.dumps({name: value for name, value in order.items() if name != missing})


def rate_at(rate: float, elapsed: float) -> float:
    """Vary the rate by a quarter around the requested one, as in a real shop."""
    return rate * (1 + 0.18 * math.sin(elapsed / 7) + 0.07 * math.sin(elapsed / 1.9))


def generate(
    broker: Broker, rate: float, stop: threading.Event, shop: Shop, clock: Callable[[], float] = time.monotonic
) -> int:
    """Append orders at a rate until stopped; return how many.

    A machine that cannot keep up gets fewer orders, not a backlog.
    """
    began = last = tidied = clock()
    due, sent = 0.0, 0
    while not stop.wait(TICK_SECONDS):
        now = clock()
        due += rate_at(rate, now - began) * min(1.0, now - last)
        last = now
        records = shop.orders(int(due), now_ms())
        if records:
            broker.append(ORDERS, records)
        due -= len(records)
        sent += len(records)
        if now - tidied > TIDY_SECONDS:
            broker.enforce_retention()
            tidied = now
    return sent


def _watch(stop: threading.Event) -> None:
    # The other end of the pipe is closed when the demo ends, for whatever reason.
    sys.stdin.read()
    stop.set()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m potok.demo.orders", description="Write orders until standard input ends."
    )
    parser.add_argument("broker")
    parser.add_argument("--rate", type=float, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    stop = threading.Event()
    threading.Thread(target=_watch, args=(stop,), daemon=True).start()
    generate(open_broker(options.broker), options.rate, stop, Shop(options.seed))


if __name__ == "__main__":
    main()
