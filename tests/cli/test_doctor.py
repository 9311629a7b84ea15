from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.storage import scene

from potok.cli.checks import doctor
from potok.errors import SetupError
from potok.log.embedded import catalog
from potok.log.embedded.metadata import Metadata
from potok.settings import Settings

GB = 1 << 30


def test_a_machine_that_has_everything_passes(potok) -> None:
    result = potok("doctor")
    assert result.code == 0
    assert "fail" not in result.out
    for what in ("Python", "Java", "Potok", "pyspark", "pyarrow", "lmdb", "memory", "data", "disk"):
        assert what in result.out


def test_json_returns_one_object_for_each_finding(potok) -> None:
    findings = potok("doctor", "--json").objects
    assert findings[0]["what"] == "Python"
    assert {"what", "status", "detail", "hint"} == set(findings[0])


def test_a_failure_ends_with_1_and_says_what_to_type(potok, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the data should be")
    result = potok("doctor")
    assert result.code == 1
    assert "hint: choose another directory with --broker" in result.out


def test_the_data_directory_need_not_exist_yet(tmp_path: Path) -> None:
    statuses = [finding.status for finding in doctor.check_directory(tmp_path / "not" / "yet")]
    assert statuses[0] == "ok"
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10, 1), "fail"), ((3, 11, 0), "ok"), ((3, 13, 5), "ok"), ((3, 14, 0), "fail")]
)
def test_python_must_be_of_a_known_version(version: tuple[int, ...], status: str) -> None:
    assert doctor.check_python(version).status == status


@pytest.mark.parametrize(
    ("heap", "total", "status"),
    [("2g", 8 * GB, "ok"), ("2g", 2 * GB + 1, "warn"), ("2g", GB, "fail"), ("512m", GB, "ok"), ("2048", GB, "fail")],
)
def test_memory_must_hold_more_than_the_heap(heap: str, total: int, status: str) -> None:
    assert doctor.check_memory(heap, total).status == status


def test_a_java_that_is_missing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise SetupError("no Java", hint="install one")

    monkeypatch.setattr("potok.java_runtime.find_java", missing)
    assert doctor.check_java() == doctor.Finding("Java", "fail", "no Java", "install one")


def test_a_dependency_that_is_missing_is_a_failure() -> None:
    finding = doctor.check_potok(["potok.errors", "no_such_module"])
    assert (finding.what, finding.status) == ("Potok", "fail")
    assert "no_such_module" in finding.detail and "make setup" in finding.hint


def test_a_package_that_does_not_load_is_a_failure() -> None:
    finding = doctor.check_package("no-such-package", load=True)
    assert finding.status == "fail"
    assert finding.hint == "pip install --force-reinstall no-such-package"


@pytest.mark.parametrize(
    ("broker", "directory"),
    [("file:./data", "data"), ("data", "data"), ("file:/x/y", "/x/y"), ("kafka://host:9092", None)],
)
def test_the_data_directory_is_that_of_the_broker(broker: str, directory: str | None) -> None:
    assert doctor.data_directory(broker) == (None if directory is None else Path(directory).absolute())


def test_a_spark_that_does_not_start_is_a_failure() -> None:
    def broken(_: Settings) -> int:
        raise RuntimeError("gateway exited")

    finding = doctor.check_spark(Settings(), broken)
    assert (finding.status, finding.detail) == ("fail", "does not start: gateway exited")
    assert doctor.check_spark(Settings(), lambda _: 4200).detail == "started in 4.2 s and ran a job"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("filled") / "data"
    scene.build(directory)
    return directory


@pytest.fixture
def data(filled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled, tmp_path / "data")


def spoil(path: Path, share: float = 0.5) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * share)] ^= 4
    path.write_bytes(content)


def test_verify_reads_the_log_and_the_state_of_every_query(potok, data: Path) -> None:
    result = potok("doctor", "--verify", "--json")
    assert result.code == 0
    found = {finding["what"]: finding for finding in result.objects}
    assert "records: 1,200" in found["topic orders"]["detail"]
    assert "records: 300" in found["topic parts"]["detail"]
    assert "cells" in found["query orders-query"]["detail"]


@pytest.mark.parametrize(
    ("pattern", "what", "hint"),
    [
        ("log/topics/orders-*/1/*0.segment", "topic orders", "restore the file from a backup"),
        ("archive/parts-*/0/*.parquet", "topic parts", "restore the file"),
        ("log/meta/data.mdb", "log", "restore the whole data directory"),
        ("queries/orders-query/state/1/data.mdb", "query orders-query", "potok run PROGRAM --shadow"),
    ],
)
def test_verify_names_the_file_that_is_damaged_and_ends_with_1(
    potok, data: Path, pattern: str, what: str, hint: str
) -> None:
    path = next(path for path in sorted(data.glob(pattern)) if path.stat().st_size)
    if path.suffix == ".mdb":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        spoil(path)
    result = potok("doctor", "--verify", "--json")
    assert result.code == 1
    (failed,) = [finding for finding in result.objects if finding["status"] == "fail"]
    assert failed["what"] == what
    assert str(path) in failed["detail"]
    assert hint in failed["hint"]


def test_verify_finds_a_dangling_index_entry(potok, data: Path) -> None:
    metadata = Metadata.open(data / "log" / "meta")

    def mislead(txn) -> None:
        key, value = next(catalog.scan(txn, b"i"))
        txn.put(key, value[:8] + (8).to_bytes(8, "little") + value[16:])

    metadata.write(mislead)
    metadata.close()
    result = potok("doctor", "--verify", "--json")
    assert result.code == 1
    assert "the index points to no frame there" in result.out


def test_verify_where_there_is_nothing_yet(potok) -> None:
    result = potok("doctor", "--verify")
    assert result.code == 0
    assert "has no data yet" in result.out
