"""In a wheel, every package of ours has another name, and nothing uses the old one."""

from pathlib import Path

import pytest

from hatch_build import NAMES, NotRenamed, renamed, renamed_reference


@pytest.mark.parametrize(
    ("here", "in_a_wheel"),
    [
        ("from service import build_app\n", "from geomill import build_app\n"),
        ("from service.db.pool import (\n    Database,\n)\n", "from geomill.db.pool import (\n    Database,\n)\n"),
        ("from sandbox import pool\n", "from geomill.sandbox import pool\n"),
        ("from sandbox.pool import Pool as P\n", "from geomill.sandbox.pool import Pool as P\n"),
        ("import service\n", "import geomill as service\n"),
        ("import sandbox  # why\n", "import geomill.sandbox as sandbox  # why\n"),
        ("def f():\n    'é'; from service import a; from sandbox import b\n", None),
        ("from services import a\nimport services.sandbox\nfrom . import service\n", ""),
        ("service = 'service'; log('sandbox.spawner_lost')\n", ""),
        ('"""See service.db.pool and `from service import x`."""\n', ""),
    ],
)
def test_imports_are_renamed_and_nothing_else(here: str, in_a_wheel: str | None) -> None:
    """An empty text means no change."""
    if in_a_wheel is None:
        in_a_wheel = "def f():\n    'é'; from geomill import a; from geomill.sandbox import b\n"
    assert renamed(here) == (in_a_wheel or here)


@pytest.mark.parametrize(
    "source",
    [
        "import service.db.pool\n",
        "import os, sandbox.pool\n",
        "import service as ours\n",
        "from  service import x\n",
        "from \\\n    service import x\n",
        'argv = ("-m", "service.geojson.scan")\n',
        'find_spec("sandbox.pool")\n',
        'argv = (python, "-m", "service", "serve")\n',
        'argv = [python, "-m", "sandbox"]\n',
    ],
)
def test_what_cannot_be_renamed_fails_the_build(source: str) -> None:
    """Otherwise it would fail only where the wheel is installed."""
    with pytest.raises(NotRenamed, match="line 1"):
        renamed(source)


def test_the_command_is_renamed() -> None:
    """The installer creates a program from it."""
    assert renamed_reference("service.cli:main") == "geomill.cli:main"


@pytest.mark.no_cover
def test_everything_here_can_be_renamed() -> None:
    """No module names another one in a string, or imports it in a form that is not rewritten."""
    root = Path(__file__).parents[2]
    for directory in NAMES:
        for path in (root / directory).rglob("*.py"):
            once = renamed(path.read_text(encoding="utf-8"))
            assert renamed(once) == once
