"""Times that cannot be read are reported with their text."""

from __future__ import annotations

import pytest

from sql.in_process_sql import InProcessSql

SCRIPT = """
CREATE STREAM a (k VARCHAR KEY, t VARCHAR) WITH (KAFKA_TOPIC = 'a', VALUE_FORMAT = 'JSON', {with_});
CREATE STREAM b AS SELECT k, t FROM a;
"""
PATTERN = "TIMESTAMP = 't', TIMESTAMP_FORMAT = 'yyyy-MM-dd'"


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ({"t": "yesterday"}, "cannot read a time from 'yesterday' for column T by 'yyyy-MM-dd'"),
        ({}, "cannot read a time from nothing for column T by 'yyyy-MM-dd'"),
    ],
)
def test_a_dead_letter_quotes_the_invalid_time(value: dict[str, str], reported: str) -> None:
    with InProcessSql(SCRIPT.format(with_=PATTERN)) as driver:
        driver.send("a", value, "x", timestamp=1)
        driver.run()
        (letter,) = driver.dead_letters()
        assert (letter.reason, letter.error) == ("timestamp", reported)
