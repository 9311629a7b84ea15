from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from potok.java_runtime import Java
from potok.spark.start import class_archive
from potok.spark.start.class_archive import UNUSED_FOR_S, ClassArchive

OPTIONS = "-Dlog=x -XX:+UseSerialGC -Xms64m"
ENDED = 2**30
"""No process has this number."""


@pytest.fixture(autouse=True)
def no_options_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in class_archive._VARIABLES:
        monkeypatch.delenv(name, raising=False)


def java(directory: Path, script: str = "exit 0") -> Java:
    """A `java` that finds the file to write in $archive."""
    executable = directory / "java"
    executable.write_text(
        f'#!/bin/sh\nfor word do case "$word" in -XX:SharedArchiveFile=*) archive=${{word#*=}};; esac; done\n{script}\n'
    )
    executable.chmod(0o755)
    return Java(executable, "17.0.1", "PATH")


def jvm(*arguments: str) -> Any:
    bean = SimpleNamespace(getInputArguments=lambda: list(arguments), getClassPath=lambda: "a.jar:b.jar")
    factory = SimpleNamespace(getRuntimeMXBean=lambda: bean)
    management = SimpleNamespace(ManagementFactory=factory)
    return SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(management=management)))


def dumped(archive: ClassArchive) -> None:
    process = archive.dump()
    assert process is not None
    process.wait(60)


def test_the_first_run_lists_its_classes_and_the_next_one_maps_the_archive(tmp_path: Path) -> None:
    runtime = java(tmp_path, 'echo "$@" > "$archive"')
    first = ClassArchive.of(runtime, tmp_path / "cache", OPTIONS)
    assert [option.split("=")[0] for option in first.options] == ["-XX:DumpLoadedClassList"]
    first.started(jvm("-Xmx2g", "-Dsecret=x", *first.options), ENDED)
    dumped(first)
    second = ClassArchive.of(runtime, tmp_path / "cache", OPTIONS)
    assert second.options[0] == f"-XX:SharedArchiveFile={second.path}"
    assert not second.is_recording
    assert second.path is not None
    words = second.path.read_text().split()
    assert words[-3:] == ["-Xmx2g", "-cp", "a.jar:b.jar"]


def test_one_process_at_a_time_makes_an_archive(tmp_path: Path) -> None:
    runtime = java(tmp_path)
    first = ClassArchive.of(runtime, tmp_path, OPTIONS)
    second = ClassArchive.of(runtime, tmp_path, OPTIONS)
    assert first.is_recording
    assert not second.is_recording
    assert second.options == []
    assert second.dump() is None


def test_a_dump_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    runtime = java(tmp_path, 'echo half > "$archive"; exit 1')
    archive = ClassArchive.of(runtime, tmp_path / "cache", OPTIONS)
    archive.started(jvm(), ENDED)
    dumped(archive)
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]
    assert ClassArchive.of(runtime, tmp_path / "cache", OPTIONS).is_recording


def test_after_a_jvm_that_never_started_the_next_run_lists_its_classes(tmp_path: Path) -> None:
    runtime = java(tmp_path)
    archive = ClassArchive.of(runtime, tmp_path / "cache", OPTIONS)
    assert archive.dump() is None
    assert ClassArchive.of(runtime, tmp_path / "cache", OPTIONS).is_recording


def test_a_cache_that_cannot_be_written_to_means_no_archive(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    archive = ClassArchive.of(java(tmp_path), tmp_path / "cache", OPTIONS)
    assert archive.options == []
    assert not archive.is_recording


@pytest.mark.parametrize("option", ["-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa", "-XX:AOTCache=/mine.aot"])
def test_a_chosen_archive_directory_is_used(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ClassArchive.of(java(tmp_path), tmp_path, f"{OPTIONS} {option}").options == []
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", option)
    assert ClassArchive.of(java(tmp_path), tmp_path, OPTIONS).options == []


def test_a_path_that_a_jvm_would_misread_means_no_archive(tmp_path: Path) -> None:
    assert ClassArchive.of(java(tmp_path), tmp_path / "my cache", OPTIONS).options == []


def test_an_archive_belongs_to_a_java_and_its_flags_but_not_to_a_heap_size(tmp_path: Path) -> None:
    runtime = java(tmp_path)

    def path(java: Java, options: str) -> Path | None:
        return ClassArchive.of(java, tmp_path, options).path

    known = path(runtime, OPTIONS)
    assert path(runtime, "-Dlog=y -XX:+UseSerialGC -Xms1g") == known
    assert path(runtime, "-XX:+UseG1GC") != known
    assert path(Java(runtime.executable, "25", "PATH"), OPTIONS) != known


def test_java_25_names_its_messages_otherwise(tmp_path: Path) -> None:
    executable = java(tmp_path).executable
    for version, named in (("17.0.1", False), ("25.0.2", True)):
        archive = ClassArchive.of(Java(executable, version, "PATH"), tmp_path, OPTIONS)
        assert archive.path is not None
        archive.path.touch()
        options = ClassArchive.of(Java(executable, version, "PATH"), tmp_path, OPTIONS).options
        assert ("-Xlog:aot*=off" in options) == named


def test_unused_archives_are_deleted(tmp_path: Path) -> None:
    old, used = tmp_path / "spark-classes-old.jsa", tmp_path / "spark-classes-used.jsa"
    for path, age_s in ((old, UNUSED_FOR_S + 60), (used, 60)):
        path.touch()
        os.utime(path, (path.stat().st_mtime - age_s,) * 2)
    ClassArchive.of(java(tmp_path), tmp_path, OPTIONS).dump()
    assert not old.exists()
    assert used.exists()
