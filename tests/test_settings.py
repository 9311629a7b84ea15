from __future__ import annotations

import os
import pickle
import re
from pathlib import Path

import pytest

from potok.settings import SettingError, Settings, settings_file


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
def test_a_boolean_setting_accepts_the_usual_spellings(tmp_path: Path, text: str, value: bool) -> None:
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
        ("log_level = 'loud'", {}, '"loud" cannot be the value of "log_level"', "write one of: DEBUG, INFO"),
        ("zzz = 1", {}, 'no setting "zzz"', "known settings: broker"),
        ("shards = 'many'", {}, '"many" cannot be the value of "shards"', "a whole number above zero"),
        ("shards = true", {}, '"True" cannot be', "a whole number above zero"),
        ("", {"POTOK_SHARDS": "0"}, '"0" cannot be the value of "POTOK_SHARDS"', "a whole number above zero"),
        ("", {"POTOK_SPARK_UI": "maybe"}, '"maybe" cannot be', "true or false"),
        ("idle_after = 'soon'", {}, '"soon" cannot be the value of "idle_after"', "a duration"),
        ("spark = 3", {}, 'this cannot be the value of "spark"', "a table of Spark settings"),
        ("kafka = 3", {}, 'this cannot be the value of "kafka"', "a table of options of Kafka's client"),
        ("broker = ", {}, "not valid TOML", "fix the line"),
    ],
)
def test_an_error_says_what_to_write(
    tmp_path: Path, toml: str, environ: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(SettingError) as raised:
        load(tmp_path, toml, environ)
    assert message in raised.value.message
    assert hint in raised.value.hint


@pytest.fixture(autouse=True)
def not_yet_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.settings._warned_of", set())


def test_an_unknown_variable_is_a_warning_that_names_the_closest_setting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert load(tmp_path, environ={"POTOK_BROKR": "x"}) == Settings()
    load(tmp_path, environ={"POTOK_BROKR": "x"})
    (message,) = caplog.messages
    assert "POTOK_BROKR (did you mean POTOK_BROKER?)" in message


def test_variables_that_kubernetes_injects_for_services_are_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    injected = {
        "POTOK_SERVICE_HOST": "10.0.0.1",
        "POTOK_SERVICE_PORT": "8088",
        "POTOK_SERVICE_PORT_HTTP": "8088",
        "POTOK_PORT": "tcp://10.0.0.1:8088",
        "POTOK_PORT_8088_TCP_ADDR": "10.0.0.1",
        "POTOK_KAFKA_SERVICE_HOST": "10.0.0.2",
        "POTOK_KAFKA_PORT_9092_TCP": "tcp://10.0.0.2:9092",
        "POTOK_KAFKA_SASL_USERNAME": "ann",
    }
    assert load(tmp_path, environ=injected).kafka == {"sasl.username": "ann"}
    assert len(caplog.messages) == 1
    assert "POTOK_SERVICE_HOST" in caplog.text


def test_the_nearest_file_of_the_parents_is_used(tmp_path: Path) -> None:
    deep = tmp_path / "project" / "src" / "shop"
    deep.mkdir(parents=True)
    (tmp_path / "potok.toml").write_text("shards = 2")
    (tmp_path / "project" / "potok.toml").write_text("shards = 3")
    assert settings_file(deep) == tmp_path / "project" / "potok.toml"
    assert Settings.load(directory=deep, environ={}).shards == 3
    (deep / "potok.toml").write_text("shards = 4")
    assert Settings.load(directory=deep, environ={}).shards == 4


def test_relative_paths_in_a_file_of_a_parent_start_at_that_file(tmp_path: Path) -> None:
    (tmp_path / "potok.toml").write_text('broker = "file:./data"\nstate = "state"\ncache_dir = "/cache"')
    (tmp_path / "src").mkdir()
    settings = Settings.load(directory=tmp_path / "src", environ={})
    assert (settings.broker, settings.state) == (f"file:{tmp_path}/data", f"{tmp_path}/state")
    assert settings.cache_dir == "/cache"


def test_a_url_in_a_file_of_a_parent_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "potok.toml").write_text('broker = "kafka://localhost:9092"')
    (tmp_path / "src").mkdir()
    assert Settings.load(directory=tmp_path / "src", environ={}).broker == "kafka://localhost:9092"


def test_a_file_of_another_user_in_a_parent_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "potok.toml").write_text("shards = 2")
    (tmp_path / "src").mkdir()
    found = Path.stat

    def of_another(path: Path, **options: bool) -> os.stat_result:
        seen = list(found(path, **options))
        seen[4] = 4711
        return os.stat_result(seen)

    monkeypatch.setattr(Path, "stat", of_another)
    assert settings_file(tmp_path / "src") is None
    assert settings_file(tmp_path) == tmp_path / "potok.toml"


def test_an_error_in_the_settings_of_a_parent_directory_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "potok.toml").write_text("shards = 'many'")
    (tmp_path / "src").mkdir()
    with pytest.raises(SettingError, match=re.escape(str(tmp_path / "potok.toml"))):
        Settings.load(directory=tmp_path / "src", environ={})


def test_every_setting_has_an_origin(tmp_path: Path) -> None:
    (tmp_path / "potok.toml").write_text("shards = 2\nidle_after = '5 s'\n[kafka]\nsasl.username = 'ann'")
    environ = {"POTOK_SHARDS": "3", "POTOK_KAFKA_SASL_MECHANISM": "PLAIN"}
    _, origins = Settings.with_origins(directory=tmp_path, environ=environ, master="local[1]")
    assert origins == {
        "shards": "the environment",
        "idle_after_ms": "potok.toml",
        "kafka.sasl.username": "potok.toml",
        "kafka.sasl.mechanism": "the environment",
        "master": "the arguments",
    }


def test_the_variables_of_the_kill_tests_are_not_settings(tmp_path: Path) -> None:
    environ = {"POTOK_FAILPOINT": "staged", "POTOK_FAILPOINT_SIGNAL": "SIGSTOP"}
    assert load(tmp_path, environ=environ) == Settings()


def test_settings_can_be_sent_to_another_process(tmp_path: Path) -> None:
    settings = load(tmp_path, "[spark]\nsql.ansi.enabled = false")
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
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
