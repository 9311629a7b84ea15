"""The log of the worker with Faust's methods: `self.log.info` of services, `app.log.info` of the app."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from potok.log.broker import Broker

logger = logging.getLogger("potok.faust")


class WorkerLog(logging.LoggerAdapter[logging.Logger]):
    """A logger with the short level names of Faust's."""

    def __init__(self) -> None:
        super().__init__(logger, {})

    def warn(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.warning(msg, *args, **kwargs)

    def crit(self, message: object, *args: object, **options: Any) -> None:
        self.critical(message, *args, **options)

    def dev(self, message: object, *args: object, **options: Any) -> None:
        """Log a message for developers: `-l debug` shows it."""
        self.debug(message, *args, **options)


class AppLog(WorkerLog):
    """Both logs of an app: calling it opens the log of records; its methods write to the log of the worker."""

    def __init__(self, opened: Callable[[], Broker]) -> None:
        super().__init__()
        self._opened = opened

    def __call__(self) -> Broker:
        return self._opened()
