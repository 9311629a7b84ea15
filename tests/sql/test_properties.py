from __future__ import annotations

import pytest

from potok.errors import QueryError
from potok.sql.errors import Refused
from potok.sql.properties import ALWAYS, KNOWN, OFFSET_RESET, PACING, UNUSED, Properties, check_property
from sql.in_process_sql import InProcessSql

STRICT = "ksql.timestamp.throw.on.invalid"
TIMED = (
    "CREATE STREAM s (k VARCHAR KEY, at VARCHAR) WITH (KAFKA_TOPIC = 's', TIMESTAMP = 'at', TIMESTAMP_FORMAT = 'yyyy');"
)


@pytest.mark.parametrize("name", KNOWN)
def test_the_default_of_a_property_can_be_set(name: str) -> None:
    default = KNOWN[name].default or ("earliest" if name == OFFSET_RESET else "")
    assert check_property(name, default) == ""
    assert check_property(f"ksql.streams.{name}", default) == ""


@pytest.mark.parametrize("name", ALWAYS)
def test_what_holds_anyway_takes_no_other_value(name: str) -> None:
    assert check_property(name, ALWAYS[name][0].upper()) == ""
    with pytest.raises(Refused, match="cannot be 'other'"):
        check_property(name, "other")


@pytest.mark.parametrize("name", PACING)
def test_what_paces_kafka_streams_is_accepted_with_a_warning(name: str) -> None:
    assert "has no effect" in check_property(f"ksql.streams.{name}", "1")


@pytest.mark.parametrize("name", [*UNUSED, "ksql.functions._global_.colour", "ksql.functions.mine.size"])
def test_what_only_ksqldb_and_its_functions_read_is_accepted_with_a_warning(name: str) -> None:
    assert "has no effect" in check_property(name, "1")


def test_properties_that_statements_were_written_down_with_long_ago_count_as_not_set() -> None:
    given = {"ksql.fancy": "1", "ksql.functions.collect_list.limit": "x", "ksql.streams.auto.offset.reset": "latest"}
    assert Properties.of(given) == Properties({OFFSET_RESET: "latest"})


def test_a_prefix_of_ksqldb_makes_no_other_property() -> None:
    with InProcessSql("SET 'ksql.streams.auto.offset.reset' = 'earliest';") as driver:
        assert driver.session.properties == {OFFSET_RESET: "earliest"}
        driver.execute("UNSET 'auto.offset.reset';")
        assert driver.session.properties == {}


def test_a_warning_of_set_is_shown() -> None:
    with InProcessSql() as driver:
        (done,) = driver.execute("SET 'commit.interval.ms' = '0';")
        assert "has no effect" in done.result.warnings[0]  # type: ignore[union-attr]


def test_a_record_without_a_time_is_set_aside_or_ends_the_query() -> None:
    lenient = f"{TIMED} CREATE STREAM t AS SELECT * FROM s;"
    with InProcessSql(lenient) as driver:
        driver.send("s", b'{"at":"soon"}', "k")
        driver.run()
        assert [letter.reason for letter in driver.dead_letters()] == ["timestamp"]
    with InProcessSql(f"SET '{STRICT}' = 'true'; {lenient}") as driver:
        driver.send("s", b'{"at":"soon"}', "k")
        with pytest.raises(QueryError, match="the time of a record cannot be read"):
            driver.run()


def test_a_property_of_one_request_holds_for_it_alone() -> None:
    with InProcessSql() as driver:
        driver.session.execute("CREATE STREAM s (k VARCHAR KEY, v INT) WITH (KAFKA_TOPIC = 's');")
        driver.session.execute("CREATE STREAM t AS SELECT * FROM s;", {"ksql.output.topic.name.prefix": "a-"})
        driver.session.execute("CREATE STREAM u AS SELECT * FROM s;")
        topics = {source.name: source.topic for source in driver.database.catalog.sources.values()}
        assert topics == {"S": "s", "T": "a-T", "U": "U"}
        with pytest.raises(Refused, match="there is no property 'a'"):
            driver.session.execute("SHOW STREAMS;", {"a": "b"})


def test_a_script_is_checked_with_the_properties_that_it_sets() -> None:
    with InProcessSql("CREATE STREAM s (k VARCHAR KEY, v INT) WITH (KAFKA_TOPIC = 's');") as driver:
        off, wrong = "SET 'ksql.query.pull.stream.enabled' = 'false';", "SET 'ksql.fancy' = '1';"
        found = [str(error) for error in driver.session.check(f"SELECT * FROM s; {off} {wrong} SELECT * FROM s;")]
        assert [text.partition("\n")[0].partition(": ")[2] for text in found] == [
            "there is no property 'ksql.fancy'",
            "S is a stream, and pull queries over streams are disabled",
        ]
        assert driver.session.properties == {}
