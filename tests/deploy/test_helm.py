"""The Helm chart: its values, and its manifests, which `make chart` renders into deploy/helm/rendered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from architecture.tree import ROOT
from deploy.chart_digest import HELM, chart_digest
from potok.version import __version__

CHART = HELM / "potok"
EXAMPLES = sorted(path.stem for path in (HELM / "examples").glob("*.yaml"))
VERSIONS = ("1.27", "1.33", "1.37")


def manifests(example: str) -> dict[str, Any]:
    text = (HELM / "rendered" / f"{example}.yaml").read_text()
    return {found["kind"]: found for found in yaml.safe_load_all(text) if found}


def pod_of(example: str) -> dict[str, Any]:
    found = manifests(example)
    return (found.get("StatefulSet") or found["Deployment"])["spec"]["template"]["spec"]


def values_of(example: str) -> dict[str, Any]:
    """Return the values of the chart with those of an example, as Helm merges them."""
    return merged(
        yaml.safe_load((CHART / "values.yaml").read_text()),
        yaml.safe_load((HELM / "examples" / f"{example}.yaml").read_text()),
    )


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = merged(found[name], value) if both else value
    return found


def is_valid(values: dict[str, Any]) -> bool:
    schema = json.loads((CHART / "values.schema.json").read_text())
    return jsonschema.Draft7Validator(schema).is_valid(values)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_rendered_manifests_are_those_of_the_chart(example: str) -> None:
    first = (HELM / "rendered" / f"{example}.yaml").read_text().splitlines()[0]
    assert chart_digest() in first, "run make chart"


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_the_manifests(example: str, version: str) -> None:
    for kind, manifest in manifests(example).items():
        if kind != "PodMonitor":  # of the Prometheus operator, whose schemas are not those of Kubernetes
            kubernetes_validate.validate(manifest, version, strict=True)


def test_the_embedded_log_is_a_stateful_set_with_a_volume() -> None:
    found = manifests("embedded")
    assert set(found) == {"ServiceAccount", "ConfigMap", "Service", "StatefulSet"}
    (claim,) = found["StatefulSet"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "50Gi"
    assert found["StatefulSet"]["spec"]["replicas"] == 1
    assert "CREATE TABLE totals" in found["ConfigMap"]["data"]["script.sql"]


def test_kafka_is_a_deployment_that_never_runs_twice() -> None:
    found = manifests("kafka")
    assert set(found) == {"ServiceAccount", "ConfigMap", "Service", "Deployment", "PodMonitor"}
    assert (found["Deployment"]["spec"]["replicas"], found["Deployment"]["spec"]["strategy"]) == (
        1,
        {"type": "Recreate"},
    )
    environment = {item["name"]: item["value"] for item in pod_of("kafka")["containers"][0]["env"]}
    assert environment["POTOK_STATE"] == "postgresql://potok@postgres/potok"
    (endpoint,) = found["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "potok-metrics-token", "key": "token"}
    assert endpoint["scheme"] == "https"


@pytest.mark.parametrize("example", EXAMPLES)
def test_pods_run_as_a_user_with_probes_and_time_to_stop(example: str) -> None:
    pod = pod_of(example)
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert pod["terminationGracePeriodSeconds"] > 25
    scheme = "HTTPS" if example == "kafka" else "HTTP"
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe["path"] for probe in probes.values()} == {"/livez", "/readyz"}
    assert {probe["scheme"] for probe in probes.values()} == {scheme}
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"] for volume in pod["volumes"]} | ({"data"} if example == "embedded" else set())
    assert mounted == volumes


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_command_of_a_pod_is_one_that_potok_has(example: str) -> None:
    """Options that the commands do not know would end the pod at its start."""
    from typer.main import get_command

    from potok.cli.queries import run
    from potok.cli.serve import app as serve

    name, *arguments = pod_of(example)["containers"][0]["args"]
    command = get_command({"serve": serve, "run": run.app}[name])
    command.make_context(name, list(arguments))


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_values_of_the_examples_are_valid(example: str) -> None:
    assert is_valid(values_of(example))


@pytest.mark.parametrize(
    "change",
    [
        {"log": {"kind": "memory"}},
        {"log": {"kafka": {"brokers": ""}}},
        {"state": {"url": ""}},
        {"state": {"url": "postgresql://potok:secret@postgres/potok"}},
        {"tokens": {"existingSecret": "", "content": ""}},
        {"terminationGracePeriodSeconds": 10},
        {"podMonitor": {"tokenSecret": {"name": ""}}},
        {"replicas": 2},
        {"maxRequests": 0},
    ],
)
def test_values_that_cannot_work_are_refused(change: dict[str, Any]) -> None:
    assert not is_valid(merged(values_of("kafka"), change))


def test_the_chart_installs_this_version() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__


@pytest.mark.parametrize("example", EXAMPLES)
def test_helm_renders_what_is_stored(example: str) -> None:
    helm = shutil.which("helm", path=f"{ROOT}/.venv/bin:{os.environ['PATH']}")
    if helm is None:
        pytest.skip("helm is not installed: make chart builds it with Go, and renders the manifests")
    values = str(HELM / "examples" / f"{example}.yaml")
    command = [helm, "template", "shop", str(CHART), "--namespace", "default", "--kube-version", "1.33.0"]
    done = subprocess.run([*command, "--values", values], capture_output=True, text=True, check=True)
    stored = (HELM / "rendered" / f"{example}.yaml").read_text().partition("\n")[2]
    assert done.stdout == stored
