from __future__ import annotations

import importlib
import subprocess
import sys
import time

import pytest

from potok.cli.main import COMMANDS
from potok.version import __version__


def test_help_lists_every_command_with_its_text(potok) -> None:
    rendered = potok("--help").out
    for name, (_, text) in COMMANDS.items():
        assert name in rendered
        assert text.split()[0] in rendered


def test_every_command_of_the_table_has_help_of_its_own(potok) -> None:
    for name in COMMANDS:
        result = potok(name, "--help")
        assert result.code == 0
        assert f"potok {name}" in result.out


def test_every_command_of_the_table_can_be_loaded() -> None:
    for module, _ in COMMANDS.values():
        assert hasattr(importlib.import_module(module), "app")


def test_help_loads_no_command_and_nothing_heavy(record_property) -> None:
    modules = [*(module for module, _ in COMMANDS.values()), "pyspark", "pyarrow"]
    program = (
        "import sys\nfrom potok.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {modules!r} if name in sys.modules], file=sys.stderr)"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    print(f"potok --help took {time.perf_counter() - began:.2f} s")
    assert done.stderr.strip() == "[]"
    assert "Usage: " in done.stdout


def test_version_is_printed(potok) -> None:
    assert potok("--version").out == f"potok {__version__}\n"


@pytest.mark.parametrize("words", [("doctr",), ("topics", "create"), ("doctor", "--colour"), ("consume",)])
def test_wrong_usage_ends_with_2(potok, words: tuple[str, ...]) -> None:
    assert potok(*words).code == 2


def test_a_misspelled_command_is_suggested(potok) -> None:
    assert "Did you mean 'doctor'?" in potok("doctr").err


def test_an_error_is_printed_with_its_hint_and_ends_with_1(potok) -> None:
    potok("topics", "create", "other")
    result = potok("topics", "describe", "orders")
    assert result.code == 1
    assert result.out == ""
    assert result.err.splitlines()[0] == 'error: topic "orders" does not exist'
    assert result.err.splitlines()[1].startswith("  hint: create it: potok topics create orders")


def test_the_broker_may_be_named_before_or_after_the_command(potok, monkeypatch: pytest.MonkeyPatch) -> None:
    potok("--broker", "file:one", "topics", "create", "a")
    potok("topics", "create", "b", "--broker", "file:one")
    monkeypatch.setenv("POTOK_BROKER", "file:one")
    assert [topic["topic"] for topic in potok("topics", "list", "--json").objects] == ["a", "b"]


def test_an_unknown_variable_is_a_warning(
    potok, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("potok.settings._warned_of", set())
    monkeypatch.setenv("POTOK_BROKR", "file:x")
    assert potok("settings").code == 0
    assert "POTOK_BROKR (did you mean POTOK_BROKER?)" in caplog.text


def test_completion_offers_the_commands() -> None:
    environment = {"_POTOK_COMPLETE": "complete_bash", "COMP_WORDS": "potok to", "COMP_CWORD": "1", "PATH": ""}
    program = "import sys; sys.argv = ['potok']; from potok.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["tokens", "topics", "top"]
