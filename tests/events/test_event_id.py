"""The ids of events."""

from __future__ import annotations

import uuid

from potok.events.write import NAMESPACE, event_id


def test_an_event_id_is_the_name_based_uuid_of_its_position() -> None:
    expected = uuid.uuid5(NAMESPACE, "shop\x1forders#0\x1fтопик\x1f0\x1f7")
    assert event_id("shop", "orders#0", "топик", 0, 7) == str(expected)
    assert uuid.UUID(event_id("shop", "orders#0", 1)).version == 5
