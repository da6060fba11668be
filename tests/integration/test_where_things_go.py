"""“Where things go” in docs/architecture.md is true: one of each is added as its row says, and works.

A copy of the program gets a format, a plan limit, a store, an endpoint, a message, a column, a statement, a setting, a
log event and a metric, each by touching nothing but the files that its row names. Then the copy is run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.database import TestServer

pytestmark = pytest.mark.xdist_group("where things go")  # one copy for all

ROOT = Path(__file__).parents[2]
COPIED = ("service", "sandbox", "sql", "tests/support", "tests/__init__.py", "tests/unit", "docs")


class Addition(msgspec.Struct, frozen=True, kw_only=True):
    """The changes for one row: text inserted before a mark in an existing file, and new files."""

    row: str
    inserted: Mapping[str, tuple[tuple[str, str], ...]] = {}
    new: Mapping[str, str] = {}

    @property
    def files(self) -> list[str]:
        """The touched files."""
        return [*self.inserted, *self.new]


FORMAT = """
from service.formats.format import Format, Reading, Writing

JML = Format(
    name="OpenJump",
    token="jml",
    title="OpenJUMP JML",
    extensions=(".jml",),
    reading=Reading(drivers=("JML",)),
    writing=Writing(driver="JML", extension=".jml", media_type="application/xml"),
)
"""

STORE = '''
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from service.storage.port import Link, StoredObject


class Shelf:
    """Results in the memory of one process."""

    regions = frozenset()

    def __init__(self):
        self.kept = {}
        self.marked = set()

    async def put(self, key, path, *, media_type, download_name, sha256=b""):
        with open(path, "rb") as file:
            self.kept[key] = file.read()

    async def link(self, key, *, expires_at, download_name, media_type):
        return Link(f"shelf:{key}", expires_at)

    async def delete(self, keys):
        for key in keys:
            self.kept.pop(key, None)

    async def objects(self, region=""):
        for key, content in self.kept.items():
            yield StoredObject(key, len(content), datetime.now(UTC))

    async def check(self, region=""):
        pass

    async def mark(self, region, mark):
        self.marked.add(mark)

    async def has_mark(self, region, mark):
        return mark in self.marked

    async def marks(self, region):
        return self.marked


@asynccontextmanager
async def open_shelf():
    yield Shelf()
'''

USE_CASE = """
async def count_jobs(services, account_id):
    return len(await services.jobs.recent(account_id, 100))
"""

HANDLER = '''
import msgspec

from service.http.api.schemas import json_response
from service.usecases.count_jobs import count_jobs


class JobCount(msgspec.Struct, frozen=True):
    """How many jobs there are."""

    jobs: int


async def job_count(request, caller):
    return json_response(JobCount(await count_jobs(request.state.services, caller.account_id)))
'''

ROUTE = """    Keyed(
        path=f"{JOBS}/count",
        name="jobCount",
        handler=job_count,
        summary="Count jobs",
        answers=(Success("How many.", JobCount),),
    ),
"""

LIMIT = """
ALTER TABLE plan ADD COLUMN least_file_bytes bigint NOT NULL DEFAULT 0;
CREATE OR REPLACE FUNCTION limit_reached(
    may_convert boolean, past_due boolean, terms plan, size_bytes bigint, used_conversions bigint, used_bytes bigint,
    price_cents bigint, wallet_cents bigint
) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN may_convert IS NOT TRUE THEN 'access'
                WHEN past_due THEN 'payment'
                WHEN size_bytes < terms.least_file_bytes THEN 'leastSize' END
$$;
"""

WORDS = """    "leastSize": Explanation(
        limit="leastSize",
        message=lambda seen: f"The plan {seen.terms['id']} converts files from {seen.terms['least_file_bytes']} bytes.",
    ),
"""


def migration(number: int, name: str) -> str:
    """The path of the nth migration after the last one."""
    last = max(int(path.name[:4]) for path in (ROOT / "sql" / "migrations").glob("*.sql"))
    return f"sql/migrations/{last + number:04}_{name}"


ADDITIONS = (
    Addition(
        row="an output format or extension",
        inserted={
            "service/formats/table/__init__.py": (
                ("from service.formats.table.json_family import", "from service.formats.table.jump import JML\n"),
                ("    ESRIJSON,\n)", "    JML,\n"),
            )
        },
        new={"service/formats/table/jump.py": FORMAT},
    ),
    Addition(
        row="a plan, a plan limit",
        inserted={
            "service/metering/plans.py": (("    retention_hours: int = 48\n", "    least_file_bytes: int = 60\n"),),
            "service/metering/limits.py": (('    "fileSize": Explanation(', WORDS),),
            "service/errors.py": (('"fileSize", "data"', '"leastSize", '),),
        },
        new={migration(1, "least_size.sql"): LIMIT},
    ),
    Addition(
        row="a storage backend",
        inserted={
            "service/app/storage.py": (
                ("    given = settings.link_secrets\n", "    return open_shelf()\n"),
                ("from service.storage.secrets import", "from service.storage.shelf import open_shelf\n"),
            )
        },
        new={"service/storage/shelf.py": STORE},
    ),
    Addition(
        row="an endpoint",
        inserted={
            "service/http/routes.py": (
                ("    Keyed(\n        path=JOBS,", ROUTE),
                (
                    "from service.http.endpoints.jobs import",
                    "from service.http.endpoints.job_count import JobCount, job_count\n",
                ),
            )
        },
        new={"service/usecases/count_jobs.py": USE_CASE, "service/http/endpoints/job_count.py": HANDLER},
    ),
    Addition(
        row="a GDAL message in plain words",
        inserted={
            "service/engine/diagnostics.py": (
                (
                    '        r"source layer has no coordinate system": ',
                    '        r"flux capacitor": "The file travels in time.",\n',
                ),
            )
        },
    ),
    Addition(
        row="a column of a job's record",
        inserted={
            "service/jobs/records.py": (("    details: Details = Details()\n", "    lane: str | None = None\n"),)
        },
        new={migration(2, "lane.sql"): "ALTER TABLE job ADD COLUMN lane text NOT NULL DEFAULT 'small';\n"},
    ),
    Addition(
        row="a statement, a column",
        inserted={
            "sql/queries/jobs.sql": (
                ("-- name: find\n", "-- name: tell\n-- What is told.\nSELECT told FROM told;\n\n"),
            )
        },
        new={migration(3, "told.sql"): "CREATE TABLE told AS SELECT 'all' AS told;\n"},
    ),
    Addition(
        row="a setting",
        inserted={
            "service/settings.py": (
                ("    memory_dir: Annotated[\n", '    colour: Annotated[str, "Colour."] = "blue"\n'),
            )
        },
    ),
    Addition(
        row="a log event",
        inserted={"service/telemetry/events.py": (("SERVER_READY: Final", 'ONE_MORE: Final = "one.more"\n'),)},
    ),
    Addition(
        row="a metric",
        inserted={
            "service/telemetry/metrics.py": (
                ("REQUEST_SECONDS = Histogram(", 'ONE_MORE = Gauge("geomill_one_more", "One more.")\n'),
            )
        },
    ),
)

NOT_TRIED = {
    "an isolation layer",  # tests/sandbox adds one
    "a fault, a statement it may meet",  # part of the tests, which run every one
}

SCRIPT = """
import json, sys
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import anyio

from sandbox.verdict import Ending, Verdict
from service.cli.settings import table
from service.db.queries import load
from service.engine.diagnostics import Subject, explain
from service.errors import Rejection
from service.settings import read_settings
from tests.support.data import lakes
from tests.support.world import world

CONVERT = "/api/geo/convert/file"


async def main():
    async with world(sys.argv[1], Path(sys.argv[2])) as here:
        async def convert(content, **fields):
            return (await here.client.post(CONVERT, files={"file": ("a.geojson", content)}, data=fields)).json()

        converted = await convert(lakes(), outputFormat="OpenJump")
        refused = await convert(b'{"type": "FeatureCollection", "features": []}')
        job = await here.services.jobs.find(UUID(converted["jobId"]), here.account.account_id)
        async with here.services.database.connection() as connection:
            statement = await connection.fetchval(load("jobs")["tell"])
        [kept] = here.services.storage.kept.values()
        print(json.dumps({
            "converted": converted,
            "kept": kept.decode(),
            "refused": refused,
            "lane": job.lane,
            "count": (await here.client.get("/api/geo/convert/jobs/count")).json(),
            "described": sorted((await here.client.get("/openapi.json")).json()["paths"]),
            "statement": statement,
            "message": explain("Warning 1: flux capacitor failed", Subject(input="GML")),
            "colour": read_settings({"GEOMILL_COLOUR": "red"}).colour,
            "shown": "GEOMILL_COLOUR" in table(),
            "metrics": (await here.client.get("/metrics")).text,
        }))


anyio.run(main)
"""


class Copy:
    """The program with one of each added."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in COPIED:
            source, target = ROOT / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, target)
        for addition in ADDITIONS:
            self._make(addition)

    def _make(self, addition: Addition) -> None:
        for name, insertions in addition.inserted.items():
            path = self.root / name
            text = path.read_text(encoding="utf-8")
            for mark, inserted in insertions:
                assert text.count(mark) == 1, (name, mark)
                text = text.replace(mark, inserted + mark)
            path.write_text(text, encoding="utf-8")
        for name, text in addition.new.items():
            (self.root / name).write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, which it imports."""
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def copy() -> Iterator[Copy]:
    """A directory that the sandbox's users can reach."""
    with tempfile.TemporaryDirectory(prefix="geomill-copy-") as directory:
        Path(directory).chmod(0o755)
        yield Copy(Path(directory))


@pytest.fixture(scope="module")
def found(copy: Copy, postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the copy does."""
    dsn = postgres.create_database()
    ended = copy.run("-c", SCRIPT, dsn, str(tmp_path_factory.mktemp("data")))
    assert ended.returncode == 0, ended.stderr
    yield json.loads(ended.stdout.splitlines()[-1])
    postgres.drop_database(dsn)


def rows() -> dict[str, str]:
    """The table: what is added, and which files are touched."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Where things go")[2]
    return dict(re.findall(r"^\| (?!to add|--)(.+?) \| (.+) \|$", text, re.MULTILINE))


def test_every_row_of_the_table_is_tried() -> None:
    """A new row needs an addition here."""
    assert set(rows()) == {addition.row for addition in ADDITIONS} | NOT_TRIED


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.row)
def test_an_addition_touches_what_its_row_names_and_nothing_else(addition: Addition) -> None:
    """Existing files by name, new files by their folder."""
    named = [re.sub(r"<\w+>", r"\\w+", name) for name in re.findall(r"`([\w<][\w/<>.]+)`", rows()[addition.row])]
    for file in addition.files:
        path = file.removeprefix("service/")
        assert any(re.fullmatch(name if "." in name else f"{name}.*", path) for name in named), (path, named)
    files = {name for name in named if "." in name}
    assert all(any(re.fullmatch(name, file.removeprefix("service/")) for file in addition.files) for name in files)


def test_a_format_is_converted_into(found: dict[str, Any]) -> None:
    """By its name; the result is the driver's own."""
    assert found["converted"]["success"] is True
    assert found["converted"]["outputFormat"] == "jml"
    assert "<JCSDataFile" in found["kept"]


def test_a_plan_limit_refuses(found: dict[str, Any]) -> None:
    """In its place in the order, by its name and with its message."""
    refused = found["refused"]
    assert (refused["success"], refused["limit"]) == (False, "leastSize")
    assert refused["error"] == "The plan free converts files from 60 bytes."


def test_a_store_keeps_results_and_signs_links(found: dict[str, Any]) -> None:
    """For the service and for its clients."""
    assert found["converted"]["downloadUrl"].startswith("shelf:")


def test_an_endpoint_answers_and_is_described(found: dict[str, Any]) -> None:
    """Because of the one row."""
    assert found["count"] == {"jobs": 2}
    assert "/api/geo/convert/jobs/count" in found["described"]


def test_a_message_of_gdal_is_put_in_plain_words(found: dict[str, Any]) -> None:
    """Whatever else is in the line."""
    assert found["message"] == "The file travels in time."


def test_a_column_of_a_job_is_read_with_it(found: dict[str, Any]) -> None:
    """With whatever default the database gives it."""
    assert found["lane"] == "small"


def test_a_statement_is_found_by_its_name(found: dict[str, Any]) -> None:
    """On the table that the migration created."""
    assert found["statement"] == "all"


def test_a_setting_is_read_and_listed(found: dict[str, Any]) -> None:
    """From its variable."""
    assert (found["colour"], found["shown"]) == ("red", True)


def test_a_metric_is_shown(found: dict[str, Any]) -> None:
    """With its description."""
    assert "# HELP geomill_one_more One more." in found["metrics"]


def test_what_is_not_documented_yet_fails_the_documentation_test(copy: Copy) -> None:
    """Settings, log events and metrics."""
    ended = copy.run("-m", "pytest", "-n0", "-q", "-k", "is_documented", "tests/unit/test_documentation.py")
    failed = set(re.findall(r"FAILED \S+::(\w+)", ended.stdout))
    assert failed == {
        "test_every_setting_is_documented_with_its_default",
        "test_every_log_event_is_documented",
        "test_every_metric_is_documented",
    }, ended.stdout
