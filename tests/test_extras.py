"""A feature whose packages are missing names its extra."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from architecture.tree import ROOT
from potok.extras import EXTRAS, ExtraMissing, extra_of, has_extra, need_extra

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

USES = [
    ("confluent_kafka", "kafka", "from potok.log.open import open_broker; open_broker('kafka://localhost:1')"),
    ("redis", "redis", "from potok.metadata.open import open_metadata; open_metadata('redis://localhost:1/0')"),
    ("psycopg", "postgres", "from potok.state.open import open_store; open_store('postgresql://host/db', 'q', 0)"),
    ("cassandra", "cassandra", "from potok.state.open import open_store; open_store('cassandra://host/ks', 'q', 0)"),
    ("fastavro", "avro", "from potok.records.formats.registry import format_named; format_named('AVRO')"),
    (
        "google.protobuf",
        "protobuf",
        "from potok.records.formats.registry import format_named; format_named('protobuf')",
    ),
    (
        "psycopg",
        "postgres",
        "from potok import StreamsBuilder\n"
        "builder = StreamsBuilder('q')\n"
        "builder.stream('orders', value='id string').to_postgres('postgresql://host/db', table='orders')\n"
        "builder.build()",
    ),
]

COMMANDS = [
    ("confluent_kafka", "kafka", ["kafka", "status"]),
    ("confluent_kafka", "kafka", ["topics", "list", "--broker", "kafka://localhost:1"]),
    ("uvicorn", "server", ["serve"]),
    ("h2", "server", ["serve"]),
    ("fastapi", "server", ["demo"]),
]


@pytest.mark.parametrize(("module", "extra", "program"), USES)
def test_a_program_error_names_the_extra_whose_packages_are_missing(module: str, extra: str, program: str) -> None:
    done = _run(module, program)
    assert done.returncode == 1
    assert f"needs the extra {extra}, which is not installed" in done.stderr
    assert f'pip install "potok[{extra}]"' in done.stderr


@pytest.mark.parametrize(("module", "extra", "words"), COMMANDS)
def test_a_command_names_the_extra_whose_packages_are_missing(module: str, extra: str, words: list[str]) -> None:
    done = _run(module, "from potok.cli.entry import main; main()", *words)
    assert done.returncode == 1
    assert f"needs the extra {extra}, which is not installed" in done.stderr
    assert "Traceback" not in done.stderr


def test_programs_on_the_embedded_log_need_no_extra() -> None:
    # Arrow looks for pandas by itself, and does not expect None among the loaded modules.
    missing = [module for modules in EXTRAS.values() for module in modules if module != "pandas"]
    program = (
        f"sys.modules.update(dict.fromkeys({missing!r}))\n"
        "import potok, potok.testing, potok.faust, potok.statements.session, potok.cli.prompt.input.keyboard"
    )
    done = _run("uvloop", program)
    assert done.returncode == 0, done.stderr


def test_every_extra_is_declared_and_part_of_all() -> None:
    declared = PROJECT["optional-dependencies"]
    assert set(declared) == {*EXTRAS, "all"}
    assert set(re.findall(r"[\w-]+", declared["all"][0])) == {"potok", *EXTRAS}


def test_no_package_is_both_required_and_in_an_extra() -> None:
    required = {_package(line) for line in PROJECT["dependencies"]}
    for extra in EXTRAS:
        packages = [_package(line) for line in PROJECT["optional-dependencies"][extra]]
        assert required.isdisjoint(packages)
        assert len(packages) == len(set(packages))


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("confluent_kafka.admin", "kafka"),
        ("google", "protobuf"),
        ("h2.events", "server"),
        ("lmdb", None),
        ("red", None),
    ],
)
def test_the_extra_of_a_module(module: str, extra: str | None) -> None:
    assert extra_of(module) == extra


def test_an_installed_extra_passes() -> None:
    need_extra("Kafka", "kafka")
    assert has_extra("protobuf")


def test_a_missing_extra_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "kafka", ("no_such_package.inside",))
    with pytest.raises(ExtraMissing, match="the log needs the extra kafka"):
        need_extra("the log", "kafka")


def _package(requirement: str) -> str:
    return re.split(r"[\[<>=;]", requirement)[0]


def _run(module: str, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    text = f"import sys; sys.modules[{module!r}] = None\n{program}"
    return subprocess.run([sys.executable, "-c", text, *words], capture_output=True, text=True, check=False)


def test_every_extra_is_on_the_page_about_installing() -> None:
    page = (ROOT / "docs" / "start" / "install.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([\w-]+)`", " ".join(rows))) == set(PROJECT["optional-dependencies"])
