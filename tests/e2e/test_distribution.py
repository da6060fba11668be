"""The wheel works where it is installed: alone, and beside an application with packages of the same names."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.db.pool import open_pool
from service.metering.ledger import publish_plans
from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
START_SECONDS = 240
APPLICATION = '''
"""An application that converts with Geomill, and has packages of its own that are named like some of ours."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import geomill
import httpx
import sandbox
import service
from starlette.applications import Starlette
from starlette.routing import Mount

mounted = geomill.build_app()


@asynccontextmanager
async def lifespan(_app: Starlette) -> AsyncIterator[None]:
    async with mounted.lifespan():
        yield


application = Starlette(routes=[Mount("/convert", mounted)], lifespan=lifespan)


async def main(key: str) -> None:
    point = {"type": "Point", "coordinates": [31, 60]}
    feature = {"type": "Feature", "properties": {"text": "x" * 1000}, "geometry": point}
    file = json.dumps({"type": "FeatureCollection", "features": [feature] * 500}).encode()
    transport = httpx.ASGITransport(application)
    async with application.router.lifespan_context(application):
        async with httpx.AsyncClient(transport=transport, base_url="http://maps", headers={"X-API-Key": key}) as client:
            answer = await client.post(
                "/convert/api/geo/convert/file",
                files={"file": ("large.geojson", file)},
                data={"outputFormat": "GeoParquet"},
            )
    Path("result").write_text(json.dumps([answer.json(), service.OWNER, sandbox.OWNER]))


anyio.run(main, sys.argv[1])
'''

pytestmark = pytest.mark.xdist_group("distribution")  # one installation for all


class Installation(msgspec.Struct, frozen=True):
    """The wheel, built from the source distribution, in an environment of its own."""

    wheel: Path
    python: Path

    def run(self, program: Sequence[str], directory: Path, **variables: str) -> "subprocess.Popen[bytes]":
        """Start a program of the environment in a directory; output and errors go to files there."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GEOMILL_", "PYTHON"))}
        with (directory / "output").open("wb") as output, (directory / "errors").open("wb") as errors:
            return subprocess.Popen(
                [self.python.with_name(program[0]), *program[1:]],
                cwd=directory,
                env={**kept, "GEOMILL_LOG_FORMAT": "json", **variables},
                stdout=output,
                stderr=errors,
            )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a release distributes: the source distribution, the wheel built from it, and the files beside them."""
    directory = tmp_path_factory.mktemp("distribution")
    environment = {**os.environ, "VENV": os.path.relpath(sys.prefix, ROOT)}
    recipe = [str(Path(sys.prefix, "bin", "just")), "distribution", VERSION, str(directory)]
    subprocess.run(recipe, cwd=ROOT, env=environment, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module")
def installation(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Its dependencies are those of the test run, which are not installed again."""
    [wheel] = files.glob("*.whl")
    environment = tmp_path_factory.mktemp("installation")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--no-index", "--python", str(python)]
    subprocess.run([*uv, str(wheel)], check=True)
    [packages] = environment.glob("lib/*/site-packages")
    (packages / "of_the_test_run.pth").write_text(sysconfig.get_path("purelib"))
    return Installation(wheel, python)


def test_a_release_says_what_it_consists_of(files: Path) -> None:
    """The bill of materials has each locked package with its hashes, and every file has a checksum."""
    named = {path.name for path in files.iterdir()}
    assert {f"geomill-{VERSION}.tar.gz", f"geomill-{VERSION}.cdx.json", "SHA256SUMS"} < named
    checked = {line.split()[1] for line in (files / "SHA256SUMS").read_text(encoding="utf-8").splitlines()}
    assert checked == named - {"SHA256SUMS"}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=files, check=True)
    bill = json.loads((files / f"geomill-{VERSION}.cdx.json").read_text(encoding="utf-8"))
    lock = (ROOT / "requirements" / "serve.lock").read_text(encoding="utf-8")
    listed = [f"{part['name']}=={part['version']}" for part in bill["components"]]
    assert listed == re.findall(r"^([\w.-]+==\S+)", lock, re.MULTILINE)
    hashed = [file["hashes"][0]["content"] for part in bill["components"] for file in part["externalReferences"]]
    assert hashed == re.findall(r"--hash=sha256:(\w+)", lock)


def test_the_wheel_holds_one_package_and_names_its_platform(installation: Installation) -> None:
    """Because of the compiled library, the tags name this processor and the oldest C library that it supports."""
    assert re.search(r"-py3-none-(manylinux|musllinux|macosx)_\d+_\d+_\w+\.whl$", installation.wheel.name)
    names = zipfile.ZipFile(installation.wheel).namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"geomill"}
    assert any(re.fullmatch(r"geomill/sandbox/forkserver/forkserver-\w+\.so", name) for name in names)
    assert {"geomill/py.typed", "geomill/sandbox/py.typed", "geomill/_sql/queries/metering.sql"} <= set(names)
    ours = {str(path.relative_to(ROOT / "service")) for path in (ROOT / "service").rglob("*") if path.is_file()}
    assert {f"geomill/{name}" for name in ours if "__pycache__" not in name} <= set(names)


async def test_an_application_with_packages_of_the_same_names_mounts_it(
    installation: Installation, database_url: str, tmp_path: Path
) -> None:
    """It converts with our programs in the sandbox, and the application keeps its own packages."""
    for package in ("service", "sandbox"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text('OWNER = "the application"\n')
    (tmp_path / "application.py").write_text(APPLICATION)
    async with open_pool(database_url, max_size=1) as database:
        await publish_plans(database)
        _, key = await Administration(database, utc_now).create_account("test", Terms(plan="personal"))
    process = installation.run(
        ("python", "application.py", key.api_key),
        tmp_path,
        GEOMILL_DATABASE_URL=database_url,
        GEOMILL_DATA_DIR=str(tmp_path / "data"),
    )
    assert process.wait(START_SECONDS) == 0, (tmp_path / "errors").read_text()
    answer, *owners = json.loads((tmp_path / "result").read_text())
    assert answer["success"], answer
    assert owners == ["the application", "the application"]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_command_serves_from_an_empty_directory(installation: Installation, tmp_path: Path, processes: str) -> None:
    """It has its own database, store and sandbox; the command that it prints converts a file; a signal stops it."""
    settings = {"GEOMILL_PORT": "0", "GEOMILL_CONVERTERS": "2", "GEOMILL_PROCESSES": processes}
    process = installation.run(("geomill", "serve"), tmp_path, **settings)
    try:
        ready = _wait_for(r'^\{.*"server\.ready".*\}$', tmp_path, process)
        command = _wait_for(r"^ +curl .*$", tmp_path, process)
        answer = json.loads(subprocess.run(["sh", "-c", command], check=True, capture_output=True).stdout)
    finally:
        process.send_signal(signal.SIGTERM)
        ended = process.wait(PATIENCE_SECONDS)
    assert answer["success"], answer
    assert json.loads(ready)["launcher"] == "fork server"
    assert ended == 0


def _wait_for(pattern: str, directory: Path, process: "subprocess.Popen[bytes]") -> str:
    give_up_at = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up_at and process.poll() is None:
        text = "".join((directory / name).read_text("utf-8", "replace") for name in ("output", "errors"))
        if found := re.search(pattern, text, re.MULTILINE):
            return found[0]
        time.sleep(0.1)
    raise AssertionError((directory / "errors").read_text(encoding="utf-8", errors="replace"))
