"""The compose file and the systemd units."""

from __future__ import annotations

import configparser
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from architecture.tree import ROOT
from potok.server.access.tokens import Tokens

DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def test_the_compose_file_follows_its_specification() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*check, str(COMPOSE / "compose.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_docker_reads_the_compose_file(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    has_compose = docker and subprocess.run([docker, "compose", "version"], capture_output=True, check=False)
    if not docker or not has_compose or has_compose.returncode:
        pytest.skip("docker compose is not installed: its check of the compose file is left out")
    subprocess.run([docker, "compose", "config", "--quiet"], cwd=COMPOSE, check=True)


def test_everything_that_the_compose_file_mounts_is_there() -> None:
    found = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    mounted = [
        volume.split(":")[0]
        for service in found["services"].values()
        for volume in service.get("volumes", ())
        if volume.startswith(".")
    ]
    assert len(mounted) >= 4 and all((COMPOSE / path).exists() for path in mounted)
    build = found["services"]["potok"]["build"]
    assert (COMPOSE / build["context"] / build["dockerfile"]).is_file()
    used = {secret for service in found["services"].values() for secret in service.get("secrets", ())}
    assert used == set(found["secrets"])
    provider = yaml.safe_load((COMPOSE / "grafana/provisioning/dashboards/potok.yaml").read_text())["providers"][0]
    assert any(
        f"{provider['options']['path']}/potok.json" in volume for volume in found["services"]["grafana"]["volumes"]
    )


def test_prometheus_accepts_its_configuration(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: scripts/servers.sh installs it")
    text = (COMPOSE / "prometheus.yml").read_text()
    assert "/etc/prometheus/potok.rules.yml" in text and "/run/secrets/metrics-token" in text
    (tmp_path / "token").write_text("x")
    text = text.replace("/etc/prometheus/potok.rules.yml", str(DEPLOY / "prometheus" / "potok.rules.yml"))
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets/metrics-token", str(tmp_path / "token")))
    done = subprocess.run(
        [promtool, "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_script_makes_secrets_that_the_server_accepts_once(tmp_path: Path) -> None:
    shutil.copy(COMPOSE / "tokens.sh", tmp_path)
    commands = Path(sys.executable).parent
    environment = {"PATH": f"{commands}:/usr/bin:/bin"}
    first = subprocess.run(
        ["./tokens.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    secrets = tmp_path / "secrets"
    tokens = Tokens.load(secrets / "tokens.toml", environ={})
    assert tokens.caller(f"Bearer {first[-1]}").scopes == {"admin"}
    assert tokens.caller(f"Bearer {(secrets / 'metrics-token').read_text().strip()}").scopes == {"read"}
    again = subprocess.run(["./tokens.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert again.stdout == "" and len(Tokens.load(secrets / "tokens.toml", environ={})) == 2


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_accepts_the_unit_and_its_protection(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: the units are not verified")
    # The command is one that exists on this machine; everything else is as in the unit.
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/potok/bin/potok", "/bin/true"))
    done = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    rated = subprocess.run(
        [analyze, "security", "--offline=yes", "--threshold=20", "--no-pager", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unrecognized option" in rated.stderr:
        pytest.skip("this systemd-analyze cannot rate the protection of a file: it needs systemd 250")
    assert rated.returncode == 0, rated.stdout


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_the_command_of_a_unit_is_one_that_potok_has(unit: Path) -> None:
    from typer.main import get_command

    from potok.cli.queries import run
    from potok.cli.serve import app as serve

    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit)
    service = parser["Service"]
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")
    assert int(service["TimeoutStopSec"]) > 25
    _, name, *arguments = service["ExecStart"].split()
    get_command({"serve": serve, "run": run.app}[name]).make_context(name, arguments)


def test_the_dashboard_asks_for_the_provisioned_data_source() -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "potok.json").read_text())
    (variable,) = [item for item in dashboard["templating"]["list"] if item["name"] == "datasource"]
    sources = yaml.safe_load((COMPOSE / "grafana/provisioning/datasources/prometheus.yaml").read_text())["datasources"]
    assert variable["query"] in {source["type"] for source in sources if source["isDefault"]}
