from __future__ import annotations

import pickle
import threading
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

from potok.expressions.function import Function
from potok.sinks.callable import CallableTarget, NotIdempotent, SinkRecord
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Rows, Types
from tests.sinks.rows import opening, rows_of, typed

TYPES = Types(typed("string"), typed("user string, amount bigint"))
RECORDS = [("a", {"user": "ann", "amount": 1}), ("b", None)]


def called(function: Any, rows: Rows, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE) -> dict[int, str]:
    sink_writer = CallableTarget(Function.of(function, (1, 2))).open(opening(TYPES, guarantee))
    return sink_writer.deliver(Batch(1, 7), rows)


def test_a_function_gets_records_and_if_it_asks_the_number_of_the_batch() -> None:
    got: list[Any] = []
    called(lambda records: got.append(records), rows_of(RECORDS, TYPES, 5))
    called(lambda records, batch: got.append(batch), rows_of(RECORDS, TYPES))
    assert got == [[SinkRecord("a", {"user": "ann", "amount": 1}, 5), SinkRecord("b", None, 6)], 7]
    assert got[0][0].value.user == "ann"


def test_headers_come_along() -> None:
    headers = pa.array([[{"name": "trace", "value": b"1"}], None])
    rows = rows_of(RECORDS, TYPES)
    got: list[Any] = []
    called(lambda records: got.extend(records), Rows(rows.key, rows.value, rows.timestamp, headers))
    assert [record.headers for record in got] == [(("trace", b"1"),), ()]


def test_refused_arguments_are_reported_by_index() -> None:
    assert called(lambda records: {1: ValueError("no value")}, rows_of(RECORDS, TYPES)) == {1: "no value"}
    assert called(lambda records: len(records), rows_of(RECORDS, TYPES)) == {}


@pytest.mark.parametrize("returned", [[1], {2: "too far"}, {"a": "no index"}])
def test_a_result_that_means_nothing_stops_the_query(returned: object) -> None:
    with pytest.raises(DeliveryFailed, match="it returned"):
        called(lambda records: returned, rows_of(RECORDS, TYPES))


def test_a_function_that_raises_stops_the_query_with_its_reason() -> None:
    with pytest.raises(DeliveryFailed, match="ZeroDivisionError") as caught:
        called(lambda records: 1 // 0, rows_of(RECORDS, TYPES))
    assert "deliver the batch again" in caught.value.hint
    with pytest.raises(DeliveryFailed) as caught:
        called(lambda records: 1 // 0, rows_of(RECORDS, TYPES), Guarantee.AT_MOST_ONCE)
    assert "are not sent again" in caught.value.hint


def test_exactly_once_needs_the_number_of_the_batch() -> None:
    with pytest.raises(NotIdempotent, match="cannot be called exactly once"):
        CallableTarget(Function.of(lambda records: None, (1, 2))).check(TYPES, Guarantee.EXACTLY_ONCE)
    CallableTarget(Function.of(lambda records, batch: None, (1, 2))).check(TYPES, Guarantee.EXACTLY_ONCE)
    CallableTarget(Function.of(lambda records: None, (1, 2))).check(TYPES, Guarantee.AT_MOST_ONCE)


def test_the_function_stays_in_the_driver_so_it_may_hold_what_cannot_travel() -> None:
    lock = threading.Lock()
    target = CallableTarget(Function.of(lambda records, batch: lock.locked(), (1, 2)))
    assert pickle.loads(cloudpickle.dumps(target)).function is None


@pytest.mark.parametrize(
    ("error", "guarantee", "passing"),
    [
        (ConnectionRefusedError("away"), Guarantee.AT_LEAST_ONCE, True),
        (TimeoutError("slow"), Guarantee.AT_LEAST_ONCE, True),
        (ValueError("wrong"), Guarantee.AT_LEAST_ONCE, False),
        (ConnectionRefusedError("away"), Guarantee.AT_MOST_ONCE, False),
    ],
)
def test_a_function_whose_server_is_away_may_be_called_again(
    error: Exception, guarantee: Guarantee, passing: bool
) -> None:
    def fails(records: Any) -> None:
        raise error

    with pytest.raises(DeliveryFailed) as raised:
        called(fails, rows_of(RECORDS, TYPES), guarantee)
    assert raised.value.passing is passing


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_of_the_function_whose_text_fails_is_a_failed_delivery() -> None:
    def fail(_: Any) -> None:
        raise Unspeakable

    with pytest.raises(DeliveryFailed, match="rejected batch 7: Unspeakable, whose text cannot be shown"):
        called(fail, rows_of(RECORDS, TYPES))
