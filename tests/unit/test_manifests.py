"""The manifests in deploy/ use settings that exist, and keep what the fleet's documentation promises."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it has none
import msgspec
import pytest
import yaml  # type: ignore[import-untyped]  # its types are another package, for this file alone

from service.cli.main import COMMANDS
from service.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FLEET = DEPLOY / "kubernetes" / "fleet.yaml"
AUTOSCALING = DEPLOY / "kubernetes" / "autoscaling.yaml"
COMPOSE = DEPLOY / "fleet.compose.yaml"
SHARED = {"GEOMILL_NATS_URL": "nats://x", "GEOMILL_DATABASE_URL": "postgresql://x", "GEOMILL_S3_BUCKET": "bucket"}
SIDES = ("gateway", "worker")
OWN = [path for path in DEPLOY.rglob("*") if path.is_file()]


def resources(kind: str) -> dict[str, Any]:
    """The resources of one kind, by name."""
    found = yaml.safe_load_all(FLEET.read_text(encoding="utf-8"))
    return {one["metadata"]["name"]: one for one in found if one["kind"] == kind}


def pod(side: str) -> dict[str, Any]:
    """The specification of the pods of one side."""
    spec: dict[str, Any] = resources("Deployment")[f"geomill-{side}"]["spec"]["template"]["spec"]
    return spec


def settings_of(side: str) -> dict[str, str]:
    """The settings of one side on Kubernetes; secrets have values of ours."""
    [container] = pod(side)["containers"]
    own = {one["name"]: one["value"] for one in container["env"]}
    return {**SHARED, **resources("ConfigMap")["geomill"]["data"], **own}


@pytest.mark.parametrize("version", ["1.27", kubernetes_validate.latest_version()])
def test_kubernetes_knows_every_field_of_the_resources(version: str) -> None:
    """By its own schemas, from the oldest version that we mean to the newest one."""
    for resource in yaml.safe_load_all(FLEET.read_text(encoding="utf-8")):
        kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.parametrize(
    "path", [*OWN, *(ROOT / name for name in ("compose.yaml", "Containerfile"))], ids=lambda path: path.name
)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    """In whatever helps to run the service, comments included."""
    named = set(re.findall(r"GEOMILL_[A-Z0-9_]+", path.read_text(encoding="utf-8")))
    assert named <= {field.encode_name for field in msgspec.structs.fields(Settings)}


@pytest.mark.parametrize("side", SIDES)
def test_a_pod_has_settings_that_exist_and_time_to_end(side: str) -> None:
    """It is killed no sooner than ten seconds after both drain settings."""
    settings = read_settings(settings_of(side))
    assert pod(side)["terminationGracePeriodSeconds"] >= settings.drain_seconds + settings.drain_delay_seconds + 10


@pytest.mark.parametrize("side", SIDES)
def test_a_pod_is_confined_and_can_still_isolate_converters(side: str) -> None:
    """No privilege, nothing writable but its volumes, and a directory in memory of the size that small work needs."""
    [container] = pod(side)["containers"]
    confined = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert container["securityContext"] == confined
    assert pod(side)["securityContext"]["runAsNonRoot"]
    assert pod(side)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod(side)["volumes"]}
    assert set(mounts) == {"/var/lib/geomill", "/tmp", "/dev/shm"}  # noqa: S108 -- of the container
    assert volumes[mounts["/dev/shm"]]["emptyDir"] == {"medium": "Memory", "sizeLimit": "512Mi"}  # noqa: S108 -- of the container
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        assert container[probe]["httpGet"]["port"] == "private"
    assert container["args"][0] in {"serve", "worker"} & COMMANDS.keys()


def test_only_prometheus_reaches_workers_which_reach_their_parts_alone() -> None:
    """Names, PostgreSQL, NATS and the bucket; every pod is covered by a policy and by a budget."""
    policies, budgets = resources("NetworkPolicy"), resources("PodDisruptionBudget")
    for side in SIDES:
        labels = resources("Deployment")[f"geomill-{side}"]["spec"]["template"]["metadata"]["labels"]
        assert policies[f"geomill-{side}"]["spec"]["podSelector"]["matchLabels"] == labels
        assert policies[f"geomill-{side}"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
        assert budgets[f"geomill-{side}"]["spec"]["selector"]["matchLabels"] == labels
    spec = policies["geomill-worker"]["spec"]
    assert [[port["port"] for port in rule["ports"]] for rule in spec["ingress"]] == [["private"]]
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {53, 5432, 4222, 443}
    assert all(rule["to"] for rule in spec["egress"])


def test_the_autoscaler_asks_for_the_converters_of_a_worker() -> None:
    """In the unit that the settings give a worker, for the deployment that there is."""
    scaled = yaml.safe_load(AUTOSCALING.read_text(encoding="utf-8"))["spec"]
    assert scaled["scaleTargetRef"]["name"] in resources("Deployment")
    [trigger] = scaled["triggers"]
    assert trigger["metadata"]["threshold"] == settings_of("worker")["GEOMILL_CONVERTERS"]


def test_compose_starts_two_of_each_side_with_settings_that_exist() -> None:
    """Workers are in no network but the one without a way out."""
    compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    for side in SIDES:
        service = compose["services"][side]
        assert service["deploy"]["replicas"] == 2
        settings = read_settings(service["environment"])
        assert settings.nats_url
        assert int(service["stop_grace_period"].removesuffix("s")) > settings.drain_seconds + 10
    assert compose["services"]["worker"]["networks"] == ["fleet"]
    assert compose["networks"]["fleet"] == {"internal": True}
