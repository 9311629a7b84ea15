"""Why a capture stops: nothing is skipped, so what cannot be continued without a gap ends it, with the repair."""

from __future__ import annotations

from potok.errors import PotokError


class CaptureStopped(PotokError):
    """A capture that cannot continue by itself."""


class NotReady(CaptureStopped):
    """A database that is not set up for change data capture, with the statements that do it."""

    def __init__(self, problem: str, *statements: str) -> None:
        super().__init__(problem, hint="run: " + " ".join(f"{each};" for each in statements))


class ChangesLost(CaptureStopped):
    """Changes between the stored position and what the server can still send may be lost."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f'capture "{name}": {problem}; changes may be missing in the topics',
            hint=f"take a new snapshot: potok cdc FILE --reset {name}",
        )
        self.name = name


class RecordRefused(CaptureStopped):
    """A change that the log does not accept; the capture does not go past it."""

    def __init__(self, topic: str, key: str, why: str) -> None:
        hint = "raise the limit of the topic, or leave the column out of the publication, and start the capture again"
        super().__init__(f'a change does not fit into topic "{topic}" (key {key}): {why}', hint=hint)


class CapturedElsewhere(CaptureStopped):
    """Another process runs the same capture."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f'capture "{name}" is run by another process: {why}', hint="stop one of the two")
