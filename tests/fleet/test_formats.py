"""A gateway has no GDAL: the workers say what can be converted, and do what takes GDAL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import msgspec
import pytest

from service.errors import Overloaded, Rejection
from service.formats.offer import NO_WORKER, Availability, Offer
from service.formats.registry import by_token
from service.ids import ServerId
from service.jobs.leases import Leases
from service.jobs.workers import REMEMBERED_SECONDS, KnownWorkers
from tests.fleet.site import Site
from tests.support.data import collection, feature, lakes, point
from tests.support.patience import wait_until
from tests.support.server import Client
from tests.support.world import World, world

pytestmark = pytest.mark.xdist_group("fleet")

LEASE = timedelta(seconds=30)
LARGE = collection(*(feature(point(number % 90, 1), name="x" * 100) for number in range(3000)))
"""More than is scanned outside the sandbox."""


def test_without_workers_a_gateway_refuses_what_takes_them(fleet: Site) -> None:
    """It runs, says when to come again, and is not ready."""
    for answer in (fleet.before_workers[name] for name in ("formats", "systems", "conversion")):
        assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text
        assert int(answer.headers["Retry-After"]) > 0
        assert "No worker" in answer.json()["detail"]
    readiness = fleet.before_workers["readiness"]
    assert readiness.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert {name: verdict for name, verdict in readiness.json()["checks"].items() if verdict != "ok"} == {
        "workers": "none"
    }


def test_a_gateway_offers_what_the_workers_have(fleet: Site) -> None:
    """Its own host has no GDAL."""
    assert fleet.gateway.events("server.ready")[0]["gdal"] == ""
    with fleet.client() as client:
        formats = offered(client)
    assert formats["gpkg"]["input"]
    assert formats["gpkg"]["output"]


def test_workers_make_previews_and_search_coordinate_systems(fleet: Site) -> None:
    """The gateway passes on what they have made."""
    with fleet.client() as client:
        job = client.convert("lakes.geojson", lakes(), outputFormat="gpkg")["jobId"]
        preview = client.get(f"/api/geo/convert/jobs/{job}/preview").raise_for_status().json()
        assert len(preview["features"]) == preview["preview"]["featureCount"]
        found = client.get("/api/geo/systems", params={"search": "utm 33n"}).raise_for_status().json()["systems"]
    assert 32633 in {system["epsg"] for system in found}
    wait_until(fleet.is_clean)


LOST = {
    "a.kml": (
        b"<kml xmlns='http://www.opengis.net/kml/2.2'><Document><NetworkLink></NetworkLink>%b</Document></kml>",
        b"<Placemark><name>a</name><Point><coordinates>1,2</coordinates></Point></Placemark>",
        "Network links (1)",
    ),
    "a.gpx": (
        b"<gpx version='1.1' xmlns='http://www.topografix.com/GPX/1/1'><metadata><name>a</name></metadata>%b</gpx>",
        b"<wpt lat='1' lon='2'/>",
        "The metadata of the file",
    ),
    "a.gml": (
        b"<FeatureCollection xmlns:gml='http://www.opengis.net/gml'><gml:name>a</gml:name>%b</FeatureCollection>",
        b"<gml:featureMember><a><b>%b</b></a></gml:featureMember>"
        % b"<gml:Point srsName='EPSG:4326'><gml:pos>1 2</gml:pos></gml:Point>",
        "The name or description of the whole collection",
    ),
}
"""Files by name: their text, a feature for it, and how the warning begins that it loses something."""


@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_is_told_by_the_worker(fleet: Site, name: str) -> None:
    """The gateway does not look for it, whether the input travels with the message or is in the store."""
    text, feature_text, told = LOST[name]
    with fleet.client() as client:
        for count in (1, 256 * 1024 // len(feature_text) + 1):
            answer = client.convert(name, text % (count * feature_text), outputFormat="csv")
            assert answer["success"], answer
            assert answer["featureCount"] == count
            assert any(warning.startswith(told) for warning in answer["warnings"]), answer


def test_a_gateway_refuses_what_holds_no_features(fleet: Site) -> None:
    """Nothing is reserved for it."""
    text, _, told = LOST["a.kml"]
    with fleet.client() as client:
        answer = client.convert("a.kml", text % b"", outputFormat="csv")
        assert not answer["success"]
        assert f"holds no features that could be converted. {told}" in answer["error"]
        assert client.usage() == (0, 0)


def test_a_gateway_analyzes_files_itself(fleet: Site) -> None:
    """In its sandbox, with Python alone."""
    with fleet.client() as client:
        answer = client.post("/api/geo/convert/analyze", files={"file": ("a.geojson", LARGE)})
        assert answer.raise_for_status().json()["report"]["applicable"], answer.text


def test_a_worker_takes_what_workers_lacked_when_it_started(fleet: Site) -> None:
    """An update replaces the workers one after the other: what the last old one lacked is offered once it has gone."""
    old, formats = uuid4(), [msgspec.to_builtins(has("of another version"))]
    fleet.rows("INSERT INTO server VALUES ($1, now(), now() + interval '1 hour', $2) RETURNING id", old, formats)
    fleet.workers[0].stop()
    fleet.revive()
    fleet.rows("DELETE FROM server WHERE id = $1 RETURNING id", old)
    with fleet.client() as client:
        wait_until(lambda: offered(client)["csv"]["output"])
        with fleet.frozen(fleet.workers[1]):
            assert client.convert("lakes.geojson", lakes(), outputFormat="csv")["success"]
    wait_until(fleet.is_clean)


def offered(client: Client) -> dict[str, Any]:
    """What the gateway says of each format."""
    answer = client.get("/api/geo/formats").raise_for_status().json()
    return {row["token"]: row for row in answer["formats"]}


class Known(NamedTuple):
    """What a gateway would know, and a clock to set."""

    here: World
    offer: Offer
    workers: KnownWorkers
    seconds: list[float]

    def worker(self, *formats: Availability) -> Leases:
        """A further worker with these formats."""
        return Leases(self.here.services.database, ServerId(uuid4()), LEASE, formats, converters=2)


def has(token: str) -> Availability:
    """A format that is read and written."""
    return Availability(token=token, input=True, output=True)


@asynccontextmanager
async def knowing(database_url: str, tmp_path: Path) -> AsyncIterator[Known]:
    """A gateway that knows no worker yet."""
    async with world(database_url, tmp_path) as here:
        offer, seconds = Offer(), [0.0]
        yield Known(here, offer, KnownWorkers(here.services.leases, offer, lambda: seconds[0]), seconds)


async def test_a_format_is_offered_while_all_workers_have_it(database_url: str, tmp_path: Path) -> None:
    """A worker that lacks it, or does not know it, takes it away for as long as it is alive."""
    async with knowing(database_url, tmp_path) as known:
        csv, gml = has("csv"), has("gml")
        reads = msgspec.structs.replace(csv, output=False, reason="No driver.")
        await known.worker(csv, gml).beat()
        await known.workers.look()
        assert known.offer.can("csv", "gml")
        assert known.offer.can("gml", "csv")

        lesser = known.worker(reads, has("of a later version"))
        await lesser.beat()
        await known.workers.look()
        assert not known.offer.can("csv", "gml")
        assert known.offer.unwritable()["csv"] == "No driver."
        known.offer.require_readable(by_token("csv"))
        with pytest.raises(Rejection, match="Not all workers"):
            known.offer.require_readable(by_token("gml"))

        await lesser.give_up()
        await known.workers.look()
        assert known.offer.can("csv", "gml")


async def test_formats_are_remembered_while_workers_restart(database_url: str, tmp_path: Path) -> None:
    """For a minute after the last one; one that is silent for a lease counts as none."""
    async with knowing(database_url, tmp_path) as known:
        await known.worker(has("csv")).beat()
        await known.workers.look()
        await known.here.advance(2 * LEASE)
        await known.workers.look()
        assert known.offer.can("csv", "csv")
        known.seconds[0] = REMEMBERED_SECONDS + 1
        await known.workers.look()
        with pytest.raises(Overloaded, match=NO_WORKER):
            known.offer.formats()


async def test_workers_that_have_paused_count_as_none(database_url: str, tmp_path: Path) -> None:
    """All of them: a minute later the gateway is not ready, until one of them takes jobs again."""
    async with knowing(database_url, tmp_path) as known:
        worker, has_paused = known.worker(has("csv")), [False]
        worker.takes_jobs = lambda: not has_paused[0]
        for paused, seconds in ((False, 0.0), (True, 1.0), (True, REMEMBERED_SECONDS + 1), (False, 0.0)):
            has_paused[0], known.seconds[0] = paused, known.seconds[0] + seconds
            await worker.beat()
            await known.workers.look()
            assert known.workers.paused == paused
            assert known.offer.can("csv", "csv") is (seconds <= 1)


async def test_a_process_that_converts_itself_offers_its_own_formats_without_workers(
    database_url: str, tmp_path: Path
) -> None:
    """Those that it lends its converters to may all have paused: it still serves its own clients."""
    async with knowing(database_url, tmp_path) as known:
        workers = KnownWorkers(known.here.services.leases, known.offer, lambda: 0.0, own=[has("csv")])
        await workers.look()
        assert known.offer.can("csv", "csv")
