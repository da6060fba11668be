"""The dashboard and alert rules in deploy/ use existing metrics, and the runbook covers each alert."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from service.app import applications  # noqa: F401 -- it registers what the service counts
from service.telemetry import metrics
from service.usecases import fleet, take_over  # noqa: F401 -- as do these in a fleet

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"
FROM_PROMETHEUS = {"job", "instance"}
SELECTION = re.compile(r"\b(geomill_\w+)(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\bby \(([^)]*)\)")
LABEL = re.compile(r"(\w+)=~?\"([^\"]*)\"")
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def exposed() -> dict[str, set[str]]:
    """The labels of each of our metrics, by its name in Prometheus."""
    known = {}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            [family] = metric.describe()
            for suffix in SUFFIXES[family.type]:
                known[family.name + suffix] = {*metric._labelnames, *(("le",) if suffix == "_bucket" else ())}
    return known


def expressions() -> Iterator[str]:
    """The expressions of the dashboard and the rules."""
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from re.split(r"^ +- alert: ", RULES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def test_every_metric_and_label_that_is_asked_for_exists() -> None:
    """In the table of metrics; a value that an alert waits for is exposed before it first occurs."""
    known = exposed()
    asked = list(expressions())
    assert len(asked) > 30
    for expression in asked:
        labels = set()
        for name, selected in SELECTION.findall(expression):
            assert name in known, f"{name} in {expression}"
            labels |= known[name]
            for label, value in LABEL.findall(selected):
                assert label in known[name] | FROM_PROMETHEUS, f"{label} in {expression}"
                if name.endswith("_total") and label not in FROM_PROMETHEUS:
                    assert REGISTRY.get_sample_value(name, {label: value}) is not None, f"{value} in {expression}"
        grouped = {label.strip() for labels in GROUPING.findall(expression) for label in labels.split(",")}
        assert grouped <= labels | FROM_PROMETHEUS, expression


def test_every_alert_has_its_paragraph_in_the_runbook() -> None:
    """In the same order, with what to look at and what to do."""
    runbook = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (Geomill\w+)\n(.+?)(?=^#|\Z)", runbook, re.MULTILINE | re.DOTALL))
    assert list(sections) == re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
    for name, paragraph in sections.items():
        assert "**Look at**" in paragraph, name
        assert "**Do**" in paragraph, name
        for metric in re.findall(r"`(geomill_\w+)`", paragraph):
            assert {metric, f"{metric}_count"} & set(exposed()), metric


def test_promtool_accepts_the_rules_and_each_fires_when_it_should(tmp_path: Path) -> None:
    """Each alert fires in one scenario and not in another; the dashboard's PromQL is valid."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    tests = RULES.with_name("alerts.test.yml")
    names = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
    for name in names:
        cases = re.findall(rf"alertname: {name}\n +exp_alerts:( \[\])?", tests.read_text(encoding="utf-8"))
        assert {"", " []"} <= set(cases), f"{name} is not tried both ways"
    asked = [expression for expression in expressions() if not expression.startswith("Geomill")]
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(asked)
    ]
    panels = tmp_path / "panels.yml"
    panels.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    for command in (("check", "rules", str(RULES), str(panels)), ("test", "rules", str(tests))):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
