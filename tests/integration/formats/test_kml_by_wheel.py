"""KML on hosts whose GDAL has no LIBKML: the GDAL in the wheel of pyogrio reads it, in the jail."""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest

from service.engine.capabilities import Capabilities, spare_drivers
from service.engine.convert import Engine
from service.errors import Rejection
from service.formats.offer import Offer
from service.formats.plan import ConversionPlan
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_verify import nothing, written
from tests.support.converters import Converters

DRIVER = "LIBKML"
DOCUMENT = """<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>{name}</name>
<Schema name="s" id="s"><SimpleField name="count" type="int"/></Schema>
<Placemark id="first"><name>Žďár</name><TimeStamp><when>2020-01-02T03:04:05Z</when></TimeStamp>
<ExtendedData><SchemaData schemaUrl="#s"><SimpleData name="count">7</SimpleData></SchemaData></ExtendedData>
<Point><altitudeMode>absolute</altitudeMode><coordinates>15.9,49.5,580</coordinates></Point></Placemark>
<Placemark><name>way</name><visibility>0</visibility>
<LineString><coordinates>1,2 3,4</coordinates></LineString></Placemark>
</Document></kml>
"""


def without(host: Capabilities) -> Capabilities:
    """The host as if its GDAL lacked the driver."""
    drivers = {name: abilities for name, abilities in host.drivers.items() if name != DRIVER}
    return msgspec.structs.replace(host, drivers=drivers, spare=spare_drivers([DRIVER]))


@pytest.fixture(params=[False, True], ids=["runs", "session"])
def pipeline(converters: Converters, request: pytest.FixtureRequest) -> Pipeline:
    made = Pipeline(converters, has_sessions=request.param)
    made.engine = Engine(without(made.engine.capabilities), has_sessions=request.param)
    return made


def test_the_format_is_offered(pipeline: Pipeline) -> None:
    """It is read and written."""
    host = pipeline.engine.capabilities
    assert DRIVER not in host.drivers
    offered = {entry.token: entry for entry in Offer(host.formats).formats()}
    assert (offered["kml"].input, offered["kml"].output, offered["kml"].reason) == (True, True, "")


async def test_all_of_a_document_is_read(pipeline: Pipeline, tmp_path: Path) -> None:
    """With typed data, times and elevations."""
    path = tmp_path / "places.kml"
    path.write_text(DOCUMENT.format(name="places"))
    done = await pipeline.to("GeoJson", path)
    first, second = json.loads(done.path.read_text())["features"]
    assert first["geometry"] == {"type": "Point", "coordinates": [15.9, 49.5, 580.0]}
    assert first["properties"]["Name"] == "Žďár"
    assert (first["properties"]["count"], second["properties"]["count"]) == (7, None)
    assert first["properties"]["timestamp"].startswith("2020-01-02T03:04:05")
    assert second["properties"]["visibility"] == 0
    assert second["geometry"]["coordinates"] == [[1.0, 2.0], [3.0, 4.0]]


async def test_layers_of_one_name_are_kept_apart(pipeline: Pipeline, tmp_path: Path) -> None:
    """Those of several documents in a KMZ."""
    path = tmp_path / "places.kmz"
    with ZipFile(path, "w") as archive:
        for name in ("doc.kml", "other.kml"):
            archive.writestr(name, DOCUMENT.format(name="places"))
    done = await pipeline.to("GeoPackage", path)
    assert [layer.features for layer in done.facts.layers] == [2, 2]
    assert len({layer.name for layer in done.facts.layers}) == 2


async def test_a_result_is_read_back(pipeline: Pipeline, tmp_path: Path) -> None:
    """What is missing from it is told, whether the run that wrote it is still open or not."""
    source = write_geojson(tmp_path / "points.geojson", [point(14.5, 50.1, n=1.5), point(-3, 4, n=None)])
    assert await written(pipeline, source, "Kml", nothing) == ()
    (told,) = await written(pipeline, source, "Kml", without_number)
    assert "'n' has 0 filled values; 1 was expected" in told


def without_number(path: Path, _: ConversionPlan) -> None:
    """Remove the data that the schema declares."""
    path.write_text(re.sub(r"<SimpleData.*?</SimpleData>", "", path.read_text()))


async def test_a_damaged_file_is_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """As ogr2ogr refuses it."""
    path = tmp_path / "places.kml"
    path.write_text(DOCUMENT.format(name="places").replace("</Point>", ""))
    with pytest.raises(Rejection, match="not a valid KML"):
        await pipeline.to("GeoJson", path)
