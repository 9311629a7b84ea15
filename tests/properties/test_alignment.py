"""What a record meets in a table does not depend on where batches end, if all input is there."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.operators.core.in_process import InProcess
from tests.oracle import Input
from tests.properties.cases import Case, Run, Send
from tests.properties.play import play
from tests.properties.programs import HEADER, VALUES

TABLES = [
    "table = builder.table('t'{table})",
    "table = builder.table('t'{table}).filter(lambda v: v['a'] > 2)",
    "table = builder.table('t'{table}).map_values(lambda v: [v['a']])",
    "table = builder.table('t'{table}).map_values(lambda v: [v['a']], name='mapped')",
    "table = builder.table('t'{table}, history=milliseconds(4))",
    "table = builder.table('t'{table}, history=seconds(9)).filter(lambda v: v['a'] > 2)",
    "table = builder.stream('t'{table}).group_by_key().count(name='counts')",
    "table = builder.stream('t'{table}).group_by_key().sum('a', name='sums')",
    "table = builder.stream('t'{table}).group_by_key().aggregate(0, lambda v, n: n * 2 + v['a'], name='folded')",
    "table = builder.stream('t'{table}).to_table(name='latest')",
    "table = builder.stream('t'{table}).select_key(lambda v: v['s'], key=str).to_table(name='latest')",
    "table = s.group_by_key().count(name='counts')",
    "table = s.filter(lambda v: v['a'] > 1).to_table(name='latest')",
]
STREAMS = ["s", "s.filter(lambda v: v['a'] > 0)", "s.flat_map_values(lambda v: [v, v])", "s.merge(s)"]
JOINS = [
    "{stream}.join(table, lambda a, b: [a['n'], b], name='j').to('out')",
    "{stream}.left_join(table, lambda k, a, b: [k, a['n'], b], name='j').to('out')",
    "{stream}.left_join(table, lambda a, b: [a['n'], b], on='s', key=str, name='j').to('out')",
    "{stream}.join(table, lambda a, b: {{**a, 'b': b}}, name='i')"
    ".left_join(table, lambda a, b: [a['n'], a['b'], b], name='j').to('out')",
]
KEYS = [b"x", b"y", b"z"]
TIMES = [0, 0, 1, 1, 2, 3, 5, 8, 8, 9]

_values = st.fixed_dictionaries(
    {
        "s": st.sampled_from(["x", "y", "z"]),
        "a": st.integers(0, 5),
        "n": st.integers(0, 99),
        "t": st.sampled_from(TIMES),
    }
)


@st.composite
def _records(draw: st.DrawFn) -> Input:
    value = draw(_values)
    text = f'{{"s": "{value["s"]}", "a": {value["a"]}, "n": {value["n"]}, "t": {value["t"]}}}'.encode()
    bad = draw(st.sampled_from([text] * 9 + [b"{"]))
    return Input(draw(st.sampled_from(KEYS)), bad, draw(st.sampled_from(TIMES)))


@st.composite
def aligned_cases(draw: st.DrawFn) -> Case:
    kinds = [
        draw(st.sampled_from(["", VALUES["ddl"]])) + draw(st.sampled_from(["", "", ', timestamp="t"'])) for _ in "st"
    ]
    table = draw(st.sampled_from(TABLES))
    lines = [f"s = builder.stream('s'{kinds[0]})", table.format(table=kinds[1])]
    join = draw(st.sampled_from(JOINS))
    lines += [join.format(stream=draw(st.sampled_from(STREAMS)))]
    topics = ["s", "t"] if "'t'" in table else ["s"]
    partitions = {topic: draw(st.integers(1, 3)) for topic in topics}
    sends = []
    for topic, count in partitions.items():
        offsets = dict.fromkeys(range(count), 0)
        for record in draw(st.lists(_records(), min_size=4, max_size=20)):
            partition = KEYS.index(record.key or b"x") % count
            sends.append(Send(topic, partition, offsets[partition], record))
            offsets[partition] += 1
    batch_records = max(1, math.ceil(len(sends) / draw(st.integers(1, 12))))
    text = HEADER + "\n".join(lines) + "\n"
    # Records that look up another key than their own come back from several shards in no particular order.
    shards = 1 if "on=" in join else draw(st.integers(1, 3))
    return Case(text, partitions, shards, draw(st.booleans()), [Run(sends, batch_records, False)])


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(case=aligned_cases())
def test_lookups_do_not_depend_on_the_batches(case: Case) -> None:
    assert play(case, InProcess) == []
