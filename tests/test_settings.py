from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from potok.settings import SettingError, Settings


def load(directory: Path, toml: str = "", environ: dict[str, str] | None = None, **explicit: object) -> Settings:
    if toml:
        (directory / "potok.toml").write_text(toml)
    return Settings.load(directory=directory, environ=environ or {}, **explicit)


def test_an_argument_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    toml = 'broker = "file:t"\nshards = 5\nmaster = "local[1]"'
    environ = {"POTOK_BROKER": "file:e", "POTOK_SHARDS": "6", "PATH": "/bin"}
    settings = load(tmp_path, toml, environ, broker="file:a")
    assert (settings.broker, settings.shards, settings.master) == ("file:a", 6, "local[1]")
    assert settings.driver_memory == Settings().driver_memory


def test_an_argument_of_none_counts_as_not_given(tmp_path: Path) -> None:
    assert load(tmp_path, broker=None).broker == "file:./data"


@pytest.mark.parametrize("toml", ['idle_after = "90 seconds"', "idle_after = 90", "idle_after_ms = 90000"])
def test_a_duration_may_be_text_seconds_or_milliseconds(tmp_path: Path, toml: str) -> None:
    assert load(tmp_path, toml).idle_after_ms == 90_000


@pytest.mark.parametrize(("text", "value"), [("1", True), ("yes", True), ("False", False), ("off", False)])
def test_a_switch_understands_the_usual_words(tmp_path: Path, text: str, value: bool) -> None:
    assert load(tmp_path, environ={"POTOK_SPARK_UI": text}).spark_ui is value


def test_the_spark_table_becomes_dotted_names(tmp_path: Path) -> None:
    toml = '[spark]\nsql.ansi.enabled = false\n"spark.executor.cores" = 2\n[spark.executor]\nmemory = "1g"'
    assert load(tmp_path, toml).spark == {
        "spark.sql.ansi.enabled": "false",
        "spark.executor.cores": "2",
        "spark.executor.memory": "1g",
    }


@pytest.mark.parametrize(
    ("toml", "environ", "message", "hint"),
    [
        ("brokr = 'x'", {}, 'no setting "brokr" (potok.toml)', 'did you mean "broker"?'),
        ("", {"POTOK_BROKR": "x"}, 'no setting "POTOK_BROKR" (the environment)', 'did you mean "POTOK_BROKER"?'),
        ("zzz = 1", {}, 'no setting "zzz"', "known settings: broker"),
        ("shards = 'many'", {}, '"many" cannot be the value of "shards"', "a whole number above zero"),
        ("shards = true", {}, '"True" cannot be', "a whole number above zero"),
        ("", {"POTOK_SHARDS": "0"}, '"0" cannot be the value of "POTOK_SHARDS"', "a whole number above zero"),
        ("", {"POTOK_SPARK_UI": "maybe"}, '"maybe" cannot be', "true or false"),
        ("idle_after = 'soon'", {}, '"soon" cannot be the value of "idle_after"', "a duration"),
        ("spark = 3", {}, 'this cannot be the value of "spark"', "a table of Spark settings"),
        ("kafka = 3", {}, 'this cannot be the value of "kafka"', "a table of options of Kafka's client"),
        ("broker = ", {}, "not valid TOML", "mend the line"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(
    tmp_path: Path, toml: str, environ: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(SettingError) as raised:
        load(tmp_path, toml, environ)
    assert message in raised.value.message
    assert hint in raised.value.hint


def test_the_variables_of_the_kill_tests_are_no_settings(tmp_path: Path) -> None:
    environ = {"POTOK_FAILPOINT": "staged", "POTOK_FAILPOINT_SIGNAL": "SIGSTOP"}
    assert load(tmp_path, environ=environ) == Settings()


def test_settings_can_be_sent_to_another_process(tmp_path: Path) -> None:
    settings = load(tmp_path, "[spark]\nsql.ansi.enabled = false")
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "potok.toml").write_bytes(b'broker = "\xff\x00"')
    with pytest.raises(SettingError, match=r"potok\.toml is not valid TOML"):
        Settings.load(directory=tmp_path, environ={})


def test_zero_is_for_ever_where_a_server_is_waited_for(tmp_path: Path) -> None:
    assert Settings.load(directory=tmp_path, environ={"POTOK_RETRY_FOR": "0"}).retry_for_ms == 0
    assert Settings.load(directory=tmp_path, environ={"POTOK_RETRY_FOR": "2 minutes"}).retry_for_ms == 120_000
    with pytest.raises(SettingError):
        Settings.load(directory=tmp_path, environ={"POTOK_RETRY_FOR": "-1"})
    with pytest.raises(SettingError):
        Settings.load(directory=tmp_path, environ={"POTOK_IDLE_AFTER": "0"})
