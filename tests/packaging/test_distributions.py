"""The wheel and the sdist hold the package, and the wheel installs with the core dependencies alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from architecture.tree import ROOT, files

# One worker builds the distributions and the environment, for all tests of this file.
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("packaging")]

fetches_packages = pytest.mark.skipif(os.environ.get("CI") != "true", reason="fetches packages; set CI=true to run it")

PROGRAM = """
from potok import StreamsBuilder
from potok.testing import TestDriver

builder = StreamsBuilder("counting")
builder.stream("orders", value="user_id string, amount double").group_by("user_id").count(name="counts")
with TestDriver(builder) as driver:
    driver.send("orders", {"user_id": "u1", "amount": 12.0})
    driver.send("orders", {"user_id": "u1", "amount": 30.0})
    driver.run()
    print(driver.table("counts").get("u1"))
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", str(directory), cwd=ROOT)
    return directory


@pytest.fixture(scope="module")
def environment(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and what it requires, and nothing else."""
    directory = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", str(directory))
    python = str(directory / "bin" / "python")
    wheel = str(next(distributions.glob("*.whl")))
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", wheel)
    return directory


def test_the_wheel_holds_every_file_of_the_package(distributions: Path) -> None:
    with zipfile.ZipFile(next(distributions.glob("*.whl"))) as wheel:
        packed = set(wheel.namelist())
    wanted = {path.relative_to("src").as_posix() for path in files(ROOT) if path.parts[0] == "src"}
    assert {"potok/__init__.py", "pyspark_potok/__init__.py"} <= wanted <= packed


def test_the_sdist_holds_the_sources_the_licence_and_the_tests(distributions: Path) -> None:
    with tarfile.open(next(distributions.glob("*.tar.gz"))) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/potok/__init__.py", "tests/conftest.py"} <= packed


@fetches_packages
def test_the_command_runs_with_the_core_dependencies(environment: Path) -> None:
    assert "Usage: potok" in run(str(environment / "bin" / "potok"), "--help")


@fetches_packages
def test_a_program_is_tested_with_the_core_dependencies(environment: Path, tmp_path: Path) -> None:
    assert run(str(environment / "bin" / "python"), "-c", PROGRAM, cwd=tmp_path).split() == ["2"]


@fetches_packages
def test_a_missing_extra_is_named(environment: Path, tmp_path: Path) -> None:
    command = [str(environment / "bin" / "potok"), "serve"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=clean_environment())
    assert done.returncode == 1
    assert 'pip install "potok[server]"' in done.stderr


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=clean_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
