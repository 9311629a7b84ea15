from __future__ import annotations

import pickle

import pyarrow as pa

from expressions.agreement import traced
from potok.expressions import ALL, Argument, fields


def test_fields_are_the_top_level_fields_that_are_read() -> None:
    assert fields(traced(lambda k, v: v.address.city + v["s"])) == {"address", "s"}
    assert fields(traced(lambda k, v: v.people[0].name)) == {"people"}
    assert fields(traced(lambda k, v: k)) == frozenset()
    assert fields(traced(lambda k, v: (k, v.i)), "key") is ALL


def test_the_value_as_a_whole_needs_every_field() -> None:
    assert fields(traced(lambda k, v: v)) is ALL
    assert fields(traced(lambda k, v: (k, v))) is ALL
    assert fields(traced(lambda v: v + 1, Argument("value", pa.int64()))) is ALL


def test_a_replaced_field_need_not_be_read() -> None:
    found = fields(traced(lambda k, v: {**v, "i": 1}))
    assert found is not ALL
    assert "i" not in found
    assert "j" in found


def test_expressions_are_equal_by_content_and_survive_pickling() -> None:
    one, other = (traced(lambda k, v: {"a": v.i * 2, "b": [v.s.upper()[0], "x"]}) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != traced(lambda k, v: {"a": v.i * 2.0, "b": [v.s.upper()[0], "x"]})
