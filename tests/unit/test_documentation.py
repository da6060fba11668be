"""The documentation is complete and matches the code."""

import re
from pathlib import Path

from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from service.cli.settings import table
from service.formats.documentation import renewed
from service.formats.summary import summary
from service.formats.table import FORMATS
from service.telemetry import events, metrics

ROOT = Path(__file__).parents[2]


def test_every_setting_is_documented_with_its_default() -> None:
    """docs/settings.md holds the table that `geomill settings` prints."""
    assert table() in (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


def test_every_log_event_is_documented() -> None:
    """docs/operating.md lists exactly the defined events."""
    logged = re.compile(r"log\.(?:debug|info|warning|error|exception)\(\s*\"([^\"]+)\"", re.IGNORECASE)
    names = {value for name, value in vars(events).items() if name.isupper()}
    for directory in ("service", "sandbox"):
        for path in (ROOT / directory).rglob("*.py"):
            names |= set(logged.findall(path.read_text(encoding="utf-8")))
    assert "sandbox.spawner_lost" in names
    text = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", text, re.MULTILINE)) == names


def test_every_metric_is_documented() -> None:
    """docs/operating.md lists exactly the defined metrics."""
    families = [family for family in REGISTRY.collect() if family.name.startswith("geomill_")]
    names = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    assert len(names) == len([metric for metric in vars(metrics).values() if isinstance(metric, MetricWrapperBase)])
    text = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(geomill_[a-z_]+)` \|", text, re.MULTILINE)) == names


def test_the_readme_lists_every_format() -> None:
    """As in the format table; `./just docs` generates the list."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert summary() in text
    assert renewed(text, summary()) == text
    assert all(f"| {row.title} |" in summary() for row in FORMATS)


def test_links_between_documents_lead_somewhere() -> None:
    """Each relative link names an existing file and, after `#`, one of its headings."""
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    anchors = {document.resolve(): _anchors(document.read_text(encoding="utf-8")) for document in documents}
    for document in documents:
        links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", document.read_text(encoding="utf-8"))
        for target, anchor in links:
            path = (document.parent / target if target else document).resolve()
            assert path.exists(), f"{document.name} links to {target}"
            assert not anchor or anchor in anchors[path], f"{document.name} links to {target}#{anchor}"


def _anchors(text: str) -> list[str]:
    """The anchors that GitHub gives to the headings of a document, without the numbers of repeated ones."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"(?ms)^```.*?^```$", "", text), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_examples_of_tests_to_run_name_some() -> None:
    """Each path in CONTRIBUTING.md exists, and `-k` selects tests of a file."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    examples = re.findall(r"^\./just test (tests/\S+)(?: -k (\S+))?", text, re.MULTILINE)
    assert examples
    for path, word in examples:
        named = ROOT / path
        assert named.exists(), path
        if word and named.is_file():
            assert re.search(rf"def test_\w*{word}", named.read_text(encoding="utf-8")), (path, word)


def test_every_exception_from_a_rule_has_its_reason() -> None:
    """Beside it."""
    bare = re.compile(r"(# noqa: [A-Z0-9, ]+|# type: ignore\[[a-z, -]+\])$", re.MULTILINE)
    for directory in ("service", "sandbox", "bench", "tests"):
        for path in (ROOT / directory).rglob("*.py"):
            assert not bare.findall(path.read_text(encoding="utf-8")), path


def test_every_reference_to_the_interface_resolves() -> None:
    """`interface 4.1` in code, tests and SQL is a heading of docs/interface.md."""
    headings = set(
        re.findall(r"^#+ (\d+(?:\.\d+)?) ", (ROOT / "docs" / "interface.md").read_text("utf-8"), re.MULTILINE)
    )
    number = r"\d+(?:\.\d+)?"
    reference = re.compile(rf"\binterface ({number}(?:(?:, | and ){number})*)")
    cited: set[str] = set()
    for directory in ("service", "sandbox", "sql/queries", "bench", "tests"):
        for path in (path for path in (ROOT / directory).rglob("*") if path.suffix in {".py", ".sql", ".c"}):
            for numbers in reference.findall(path.read_text(encoding="utf-8")):
                cited |= set(re.findall(number, numbers))
    assert "4.1" in cited
    assert cited <= headings, cited - headings


def test_every_module_that_a_comment_names_exists() -> None:
    """`usecases.pipeline`, or what is defined in it."""
    packages = [path.name for root in ("service", "sandbox") for path in (ROOT / root).iterdir() if path.is_dir()]
    reference = re.compile(rf"`((?:{'|'.join(packages)})(?:\.[a-z_]\w*)+)[`(]")
    named = [
        (path, found)
        for root in ("service", "sandbox", "bench", "tests")
        for path in (ROOT / root).rglob("*.py")
        for found in reference.findall(path.read_text(encoding="utf-8"))
    ]
    assert named
    assert [(path, found) for path, found in named if not _is_defined(found)] == []


def _is_defined(reference: str) -> bool:
    for root in ("service", "sandbox"):
        path = ROOT.joinpath(root, *reference.split("."))
        module = path.parent.with_suffix(".py")
        if path.is_dir() or path.with_suffix(".py").is_file():
            return True
        if module.is_file() and re.search(rf"\b{path.name}\b", module.read_text(encoding="utf-8")):
            return True
    return False
