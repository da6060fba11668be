"""The service is an ASGI application that others can mount, with its lifespan, under any path."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from service import build_app
from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.db.pool import open_pool
from service.http.application import Application
from service.settings import read_settings
from tests.support.data import lakes

HOST = "https://maps.example.org"


@pytest.fixture
def geomill(tmp_path: Path, database_url: str) -> Application:
    """The service, not opened yet."""
    environment = {"GEOMILL_DATA_DIR": str(tmp_path), "GEOMILL_DATABASE_URL": database_url}
    return build_app(read_settings(environment))


def around(geomill: Application, prefix: str) -> Starlette:
    """A third-party application with a page, a state and a lifespan."""

    @asynccontextmanager
    async def lifespan(_outer: Starlette) -> AsyncIterator[dict[str, str]]:
        async with geomill.lifespan():
            yield {"greeting": "hello"}

    async def greet(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.state.greeting)

    routes = [Route("/hello", greet), Mount(prefix, geomill, name="conversions")]
    return Starlette(routes=routes, lifespan=lifespan)


@asynccontextmanager
async def opened(outer: Starlette, dsn: str) -> AsyncIterator[httpx.AsyncClient]:
    """Run an application's lifespan as a server does, and call the application with a new account."""
    async with outer.router.lifespan_context(outer) as state:

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            await outer({**scope, "state": dict(state or {})}, receive, send)

        headers = {"X-API-Key": await _new_key(dsn)}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(serve), base_url=HOST, headers=headers) as client:
            yield client


async def _new_key(dsn: str) -> str:
    async with open_pool(dsn, max_size=1) as database:
        _, created = await Administration(database, utc_now).create_account("test", Terms(plan="personal"))
    return created.api_key


@pytest.mark.parametrize("prefix", ["/convert", "/very/deep"])
async def test_it_works_mounted_in_another_application(geomill: Application, database_url: str, prefix: str) -> None:
    """Conversions, links, job locations and errors work, and the outer application is not affected."""
    files = {"file": ("a.geojson", lakes())}
    async with opened(around(geomill, prefix), database_url) as client:
        assert (await client.get("/hello")).text == "hello"
        path = f"{prefix}/api/geo/convert/file"
        answer = (await client.post(path, files=files)).json()
        assert answer["success"], answer
        assert answer["downloadUrl"].startswith(f"{HOST}{prefix}/files/")
        assert (await client.get(answer["downloadUrl"])).content[:2] == b"PK"
        accepted = await client.post(path, files=files, headers={"Prefer": "respond-async"})
        assert (await client.get(accepted.headers["location"])).json()["jobId"] == accepted.json()["jobId"]
        assert (await client.get(f"{prefix}/nothing")).json()["code"] == "not_found"


async def test_it_serves_by_itself(geomill: Application, database_url: str) -> None:
    """As the application of an ASGI server that runs its lifespan."""
    async with opened(geomill, database_url) as client:
        answer = (await client.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())})).json()
        assert answer["downloadUrl"].startswith(f"{HOST}/files/")


async def test_a_lifespan_that_was_forgotten_is_told(geomill: Application) -> None:
    """The first request tells the developer what is missing."""
    outer = Starlette(routes=[Mount("/convert", geomill)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url=HOST) as client:
        with pytest.raises(RuntimeError, match="lifespan"):
            await client.get("/convert/healthz")


def test_importing_the_package_loads_nothing() -> None:
    """Only building the application does, except for what some Pythons need before any expression is compiled."""
    program = "import sys, service; print([name for name in sys.modules if name.startswith(('service.', 'starlette'))])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout in {"[]\n", "['service.possessive']\n"}
