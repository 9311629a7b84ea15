"""The functions that random programs are made of, as source text.

Most come as twins: one that can be traced, and one that means the same and cannot. Some raise for some values.
The rows they are given have the fields `s` (text), `a` and `n` (whole numbers), `b` (a float), `tags` (a list of
text) and `t` (a time); where the source declares no type, any of them may be missing or hold something else.
"""

from __future__ import annotations

from dataclasses import dataclass

ROW_PREDICATES = [
    'lambda k, v: v["a"] > 3',
    'lambda k, v: v["a"] > 3 and True',
    'lambda v: v["b"] < 1.5',
    'lambda v: True if v["b"] < 1.5 else False',
    'lambda v: v["s"] == "x"',
    'lambda v: v["s"] in ("x",)',
    'lambda v: (v["a"] > 1) & (v["a"] < 6)',
    'lambda v: 1 < v["a"] < 6',
    'lambda v: v["a"] % 2 == 0',
    'lambda v: not v["a"] % 2',
    'lambda v: v["a"]',
    'lambda v: v["s"]',
    'lambda v: v["tags"]',
    "lambda v: v.a >= v.n",
    'lambda k, v: v.get("a", 0) != 4',
    'lambda k, v: k == "k1"',
    'lambda k, v: k is None or k == "k1"',
    'lambda k, v: v is not None and v["a"] / (v["a"] - 2) > 1',
    'lambda k, v: v["a"] / (v["a"] - 2) > 1',
    "lambda k, v: True",
]

ROW_TO_ROW = [
    'lambda v: {**v, "c": v["a"] * 2}',
    'lambda v: dict(v, c=v["a"] * 2)',
    'lambda k, v: {"s": v["s"], "a": v["a"] + 1, "b": v["b"], "n": v["n"], "tags": v["tags"]}',
    'lambda v: {**v, "b": v["n"] / v["a"]}',
    'lambda v: {**v, "b": (lambda q: q)(v["n"] / v["a"])}',
    'lambda v: {**v, "a": v["a"] // 2, "n": v["a"] % -3}',
    'lambda v: {**v, "a": (lambda a: a // 2)(v["a"]), "n": v["a"] % -3}',
    'lambda v: {**v, "s": v["s"].upper()}',
    'lambda v: {**v, "s": f"{v[\'s\'].upper()}"}',
    'lambda v: {**v, "s": v["s"] + "!"}',
    'lambda k, v: {**v, "k": k, "inner": {"a": v["a"], "both": [v["a"], v["n"]]}}',
]

ROW_TO_NUMBER = [
    'lambda v: v["a"] + 0',
    'lambda v: (lambda a: a + 0)(v["a"])',
    'lambda k, v: v["a"] * v["n"] + 0',
    'lambda v: v["n"] - v["a"]',
    'lambda v: len(v["s"])',
    'lambda v: 100 // v["a"]',
]

ROW_TO_ANY = [
    'lambda v: v["s"]',
    'lambda v: v["b"]',
    'lambda v: v["tags"]',
    'lambda v: [v["a"], v["s"]]',
    'lambda v: (v["s"], v["a"])',
    "lambda v: None",
    'lambda v: None if v["a"] == 1 else v["s"]',
]

NUMBER_TO_NUMBER = [
    "lambda v: v + 1",
    "lambda v: v * 2 or 0",
    "lambda k, v: v * v",
    "lambda v: 12 // v",
    "lambda v: -v",
]

NUMBER_PREDICATES = ["lambda v: v > 3", "lambda v: v > 3 or False", "lambda k, v: v", "lambda v: 6 / v >= 2"]

ROW_KEYS = [
    '"s"',
    'lambda v: v["s"]',
    'lambda k, v: v["s"] or None',
    'lambda v: v["a"] % 3',
    'lambda v: int(v["a"] % 3)',
    'lambda v: (v["s"], v["n"])',
    "lambda k, v: k",
    'lambda k, v: None if v["a"] == 0 else k',
]

NUMBER_KEYS = ["lambda v: v % 3", 'lambda v: "odd" if v % 2 else "even"', "lambda k, v: k", "lambda v: 7"]

ROW_PAIRS = [
    'lambda k, v: (v["s"], v)',
    'lambda k, v: (v["s"], {**v, "a": v["a"] + 1})',
    'lambda k, v: (k, dict(v)) if v["a"] != 2 else None',
]

ROW_FLAT_PAIRS = [
    'lambda k, v: [(tag, v) for tag in v["tags"]]',
    'lambda k, v: [(k, v), (v["s"], {**v, "a": v["a"] + 1})]',
    'lambda k, v: ((k, v) for _ in range(v["a"]))',
    'lambda k, v: None if v["a"] == 5 else [(k, v)]',
    "lambda k, v: []",
]

ROW_FLAT_ROWS = [
    'lambda v: [v, {**v, "a": v["a"] + 1}]',
    'lambda v: [v] * v["a"]',
    'lambda v: None if v["a"] == 5 else [v]',
]

ROW_FLAT_NUMBERS = ['lambda v: [v["a"] + 0, v["n"] + 0]', 'lambda v: range(v["a"])']


@dataclass(frozen=True)
class Aggregator:
    """A call that ends in a table, with NAME for its name, and what may follow it.

    `result` is `number` where each row is one, `maybe` where it may be null, `any` otherwise. What is `ordered` depends
    on the order in which the records of a key come, so it is tested on one partition only. What is `typed` would
    compare or add values of different types if the source declares none.
    """

    text: str
    result: str
    ordered: bool = False
    typed: bool = False


ROW_AGGREGATORS = [
    Aggregator("count(NAME)", "number"),
    Aggregator('sum("a", NAME)', "maybe", typed=True),
    Aggregator('sum(lambda v: v["a"] + 0, NAME)', "number"),
    Aggregator('sum(lambda v: v["b"] + 0.0 if v["b"] is not None else None, NAME)', "maybe"),
    Aggregator('sum("b", NAME)', "maybe", typed=True),
    Aggregator('min("a", NAME)', "maybe", typed=True),
    Aggregator('min(lambda v: v["a"] + 0, NAME)', "number"),
    Aggregator('min("s", NAME)', "any", typed=True),
    Aggregator('max("b", NAME)', "maybe", typed=True),
    Aggregator('max(lambda v: v["a"] + 0, NAME)', "number"),
    Aggregator('max(lambda v: len(v["s"]), NAME)', "number"),
    Aggregator('avg("a", NAME)', "maybe", typed=True),
    Aggregator('avg(lambda v: v["a"] + 0, NAME)', "number"),
    Aggregator('count_distinct("s", NAME)', "number"),
    Aggregator('count_distinct(lambda v: v["tags"], NAME)', "number"),
    Aggregator("count_distinct(NAME)", "number"),
    Aggregator("latest(NAME)", "any"),
    Aggregator('latest("a", NAME)', "any"),
    Aggregator('earliest(lambda v: [v["a"], v["s"]], NAME)', "any"),
    Aggregator('earliest("b", NAME)', "any"),
    Aggregator('collect_list("a", NAME)', "any", ordered=True),
    Aggregator("collect_list(NAME)", "any", ordered=True),
    Aggregator('aggregate(0, lambda k, v, agg: agg + v["a"], NAME)', "number"),
    Aggregator('aggregate(0, lambda k, v, agg: (lambda a: agg + a)(v["a"]), NAME)', "number"),
    Aggregator("aggregate(0, lambda v, agg: agg + 1, NAME)", "number"),
    Aggregator('aggregate(initializer=lambda: 0.5, aggregator=lambda k, v, agg: agg + v["b"], NAME)', "number"),
    Aggregator(
        'aggregate({"n": 0, "total": 0}, lambda k, v, agg: {"n": agg["n"] + 1, "total": agg["total"] + v["a"]}, NAME)',
        "any",
    ),
    Aggregator('aggregate(list, lambda k, v, agg: agg + [v["a"]], NAME)', "any", ordered=True),
    Aggregator('aggregate([], lambda k, v, agg: agg.append(v["a"]) or agg, NAME)', "any", ordered=True),
    Aggregator('aggregate("", lambda k, v, agg: agg + v["s"], NAME)', "any", ordered=True),
    Aggregator('reduce(lambda v1, v2: {**v2, "a": v1["a"] + v2["a"]}, NAME)', "any", ordered=True),
]

NUMBER_AGGREGATORS = [
    Aggregator("count(NAME)", "number"),
    Aggregator("sum(NAME)", "number"),
    Aggregator("sum(lambda v: v * 2, NAME)", "number"),
    Aggregator("min(NAME)", "number"),
    Aggregator("max(NAME)", "number"),
    Aggregator("avg(NAME)", "number"),
    Aggregator("count_distinct(NAME)", "number"),
    Aggregator("latest(NAME)", "number"),
    Aggregator("earliest(NAME)", "number"),
    Aggregator("collect_list(NAME)", "any", ordered=True),
    Aggregator("reduce(lambda v1, v2: v1 + v2, NAME)", "number"),
    Aggregator("reduce(lambda v1, v2: max(v1, v2), NAME)", "number"),
    Aggregator("reduce(lambda v1, v2: v1 - v2, NAME)", "number", ordered=True),
    Aggregator("aggregate(1, lambda k, v, agg: agg + v, NAME)", "number"),
]

ANY_AGGREGATORS = [
    Aggregator("count(NAME)", "number"),
    Aggregator("latest(NAME)", "any"),
    Aggregator("earliest(NAME)", "any"),
    Aggregator("count_distinct(NAME)", "number"),
    Aggregator("collect_list(NAME)", "any", ordered=True),
]

# The steps of a table see as many changes as there are batches, so their functions must not raise; and whether a row
# that is null is a row to them is not promised, so their answer for null is to leave it out.
TABLE_PREDICATES = {
    "number": ["lambda v: v > 2", "lambda k, v: v > 2 and True", "lambda v: v % 2 == 0"],
    "maybe": ["lambda v: v is not None and v > 2"],
    "any": ["lambda v: v is not None", "lambda v: v is not None and v != []"],
}

TABLE_MAPPERS = {
    "number": [("lambda v: v * 2", "number"), ('lambda k, v: {"k": k, "v": v}', "any"), ("lambda v: [v] or 0", "any")],
    "maybe": [("lambda v: None if v is None else v * 2", "maybe")],
    "any": [("lambda v: None if v is None else [v]", "any")],
}

COLUMNS = [
    ('lambda t: pc.add_checked(t["a"], 1), value=int', "number"),
    ('lambda t: pc.divide(t["n"], t["a"]), value=int', "number"),
    ("lambda t: {**{n: t[n] for n in t.column_names}, 's': pc.utf8_upper(t['s']), 'a': t['n']}, value=ROW", "row"),
    ("lambda df: df.with_columns(a=pl.col('a') // 2), format='polars', value=ROW", "row"),
]
"""Calls of functions of columns, and the shape of their results."""
