"""The programs that the server for Python holds loaded, so that each of its forks carries all of them."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from service.engine.convert import JAILED_PROGRAMS
from service.engine.jailed import gml_systems
from service.engine.modules import linked_modules
from service.usecases import inspect_source

ROOT = Path(__file__).parents[3]
FOR_NETWORKS = ("ssl", "http.client", "urllib.request")
GML = "http://www.opengis.net/gml/3.2"


def test_they_bring_nothing_for_networks() -> None:
    """It would be a fifth of the memory of the server, and what runs there has no network."""
    programs = (*JAILED_PROGRAMS, *inspect_source.JAILED_PROGRAMS)
    program = f"import sys, {', '.join(programs)}; print(*sys.modules.keys() & {set(FOR_NETWORKS)})"
    done = subprocess.run(
        [sys.executable, "-s", "-P", "-c", program],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


def test_they_import_only_what_the_sandbox_has(tmp_path: Path) -> None:
    """Of the packages of this host, runs see those that are linked for them, and no others."""
    programs = (*JAILED_PROGRAMS, *inspect_source.JAILED_PROGRAMS)
    subprocess.run(
        [sys.executable, "-S", "-s", "-P", "-c", f"import {', '.join(programs)}"],
        cwd=tmp_path,
        env={"PYTHONPATH": linked_modules(tmp_path).path},
        check=True,
    )


@pytest.mark.parametrize("name", ["a\"b'c", "a<b>c&d", "a\tb\nc\rd", "a\u00e9\U0001f30d"])
def test_a_geometry_is_given_the_name_of_its_system_unchanged(tmp_path: Path, name: str) -> None:
    """Whatever characters it consists of."""
    envelope = ET.Element(f"{{{GML}}}Envelope", srsName=name)
    bounds = ET.tostring(envelope, encoding="unicode").replace("\r", "&#13;")
    given, named = tmp_path / "given", tmp_path / "named"
    point = "<gml:Point><gml:pos>1 2</gml:pos></gml:Point>"
    given.write_text(
        f'<gml:FeatureCollection xmlns:gml="{GML}"><gml:boundedBy>{bounds}</gml:boundedBy>'
        f"<gml:featureMember><f><g>{point}</g></f></gml:featureMember></gml:FeatureCollection>",
        encoding="utf-8",
    )
    gml_systems.main(str(given), str(named))
    [place] = ET.parse(named).iter(f"{{{GML}}}Point")  # noqa: S314 -- written by the test
    assert place.get("srsName") == name
