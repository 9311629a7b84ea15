"""What the garbage collector leaves alone."""

from __future__ import annotations

import gc

from potok.records.garbage_collection import spare_imports


def test_what_exists_is_exempt_and_what_is_created_later_is_collected() -> None:
    existing = {"created": "before"}
    try:
        spare_imports()
        created: list[object] = []
        created.append(created)
        traversed = {id(each) for each in gc.get_objects()}
        assert id(existing) not in traversed
        assert id(created) in traversed
        del created
        assert gc.collect() >= 1
    finally:
        gc.unfreeze()
