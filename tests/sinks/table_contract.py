"""What holds for every table outside the log that has rows and a fence: a lake, or a table of a database."""

from __future__ import annotations

import pytest

from potok.sinks.errors import SinkAhead, SinkTaken
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch
from tests.sinks.tables import ANN, BOB, EVE, OutsideTable


class TableContract:
    """Subclasses have a fixture `table`."""

    def test_a_sink_that_is_ahead_of_the_query_is_refused(self, table: OutsideTable) -> None:
        for number in (1, 2, 3):
            table.put([ANN], Batch(1, number))
        with pytest.raises(SinkAhead, match="has seen batch 3, but the query has committed 0 only"):
            table.open(epoch=2)

    def test_what_a_replaced_process_still_writes_is_rejected(self, table: OutsideTable) -> None:
        before = table.open(epoch=1)
        after = table.open(epoch=2)
        table.put([ANN], Batch(2, 1), after)
        with pytest.raises(SinkTaken, match="a later start of query"):
            table.put([BOB], Batch(1, 1), before)
        with pytest.raises(SinkTaken):
            table.put([BOB], Batch(1, 2), before)
        assert table.rows() == [("ann", 1)]

    def test_an_older_start_that_is_slow_does_not_take_the_table_back(self, table: OutsideTable) -> None:
        current = table.open(2)
        table.put([ANN], Batch(2, 1), current)
        with pytest.raises((SinkTaken, SinkAhead)):
            table.open(1)
        table.put([BOB], Batch(2, 2), current)
        assert table.rows() == [("ann", 1), ("bob", 2)]

    def test_rows_are_replaced_and_deleted_by_the_key_of_the_record(self, table: OutsideTable) -> None:
        table.mode = "upsert"
        table.put([ANN, BOB])
        table.put([("a", {"name": "ann", "amount": 5}), ("b", None), ("nobody", None), EVE, ("a", ANN[1])], Batch(1, 2))
        assert table.rows() == [("a", "ann", 1), ("e", "eve", 3)]
        table.put([("e", None), ("a", None)], Batch(1, 3))
        assert table.rows() == []
        table.put([BOB], Batch(1, 4))
        assert table.rows() == [("b", "bob", 2)]

    def test_upserted_rows_that_come_again_are_those_of_the_last_attempt(self, table: OutsideTable) -> None:
        table.mode = "upsert"
        table.put([ANN])
        table.put([ANN], Batch(2, 1))
        table.put([("a", {"name": "ann", "amount": 2})], Batch(3, 1))
        assert table.rows() == [("a", "ann", 2)]

    def test_without_exactly_once_a_repeated_batch_is_appended_again(self, table: OutsideTable) -> None:
        for epoch in (1, 2):
            table.put([ANN], Batch(epoch, 1), table.open(epoch, 0, Guarantee.AT_LEAST_ONCE))
        assert table.rows() == [("ann", 1), ("ann", 1)]
