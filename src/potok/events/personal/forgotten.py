"""The event that informs readers of a topic that a subject was forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from potok.events.envelope import Envelope, write_structured
from potok.events.event_type import FORGOTTEN, event
from potok.events.kafka_binding import CONTENT_TYPE, STRUCTURED
from potok.events.personal.key_store import Announcement
from potok.events.write import event_id


@event(FORGOTTEN)
@dataclass
class SubjectForgotten:
    """The key of a subject was deleted: their personal data is None from now on, and copies of it must be deleted.

    Streams of events skip it unless it is among their types.

    >>> users = builder.events("users", types=[Registered, potok.SubjectForgotten])
    """

    subject: str


def forgotten_row(announcement: Announcement) -> dict[str, Any]:
    """Return the record of the event, under the subject as its key; the same whenever it is made."""
    id_ = event_id("potok-forget", announcement.topic, announcement.id.hex())
    attributes = {"id": id_, "source": "/potok/forget", "type": FORGOTTEN, "correlationid": id_, "eventversion": 1}
    value = write_structured(Envelope(attributes, {"subject": announcement.subject}))
    headers = [{"name": CONTENT_TYPE, "value": STRUCTURED.encode()}]
    return {"key": announcement.subject.encode(), "value": value, "headers": headers}
