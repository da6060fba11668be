"""A file that cannot be converted gets status 200, `success` false and a remedy, and is not counted."""

import io
import zipfile
from collections.abc import Iterator

import pytest

from tests.support.data import collection, feature, lakes, point, square
from tests.support.server import Client, Server

LEAKS = ("/work", "/tmp", "/home", "/dev/shm", "Traceback", "ERROR ", "ogr2ogr", ".gpkg_", "SELECT")  # noqa: S108 -- what answers may not have


@pytest.fixture(autouse=True)
def _nothing_is_left(server: Server) -> Iterator[None]:
    yield
    assert server.wait_until_idle() == []


def archive(**members: bytes) -> bytes:
    """A ZIP archive of these members; `_` in their names stands for `.`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as written:
        for name, content in members.items():
            written.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


REJECTED: dict[str, tuple[str, bytes, dict[str, str], str]] = {
    "unknown extension": ("a.docx", b"x", {}, ".geojson"),
    "no extension": ("readme", b"x", {}, ".geojson"),
    "unknown output": ("a.geojson", lakes(), {"outputFormat": "Pdf"}, "GeoPackage"),
    "output equal to input": ("a.geojson", lakes(), {"outputFormat": "geojson"}, "outputFormat"),
    "unknown target system": ("a.geojson", lakes(), {"targetEpsg": "999999", "outputFormat": "Csv"}, "999999"),
    "zero as target system": ("a.geojson", lakes(), {"targetEpsg": "0", "outputFormat": "Csv"}, "0"),
    "a vertical system": ("a.geojson", lakes(), {"targetEpsg": "5773", "outputFormat": "Csv"}, "5773"),
    "damaged": ("a.geojson", b'{"type": "FeatureCollection", "features": [', {}, ""),
    "empty": ("a.geojson", b"", {}, "empty"),
    "not what it says": ("a.gpkg", lakes(), {}, ""),
    "several files": ("a.zip", archive(a_geojson=lakes(), b_kml=b"<kml/>"), {}, "b.kml"),
    "nothing in the archive": ("a.zip", archive(readme_txt=b"x"), {}, ""),
    "areas into GPX": ("a.geojson", collection(feature(square(), n=1)), {"outputFormat": "Gpx"}, "GPX"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_rejected_file_says_why_and_counts_nothing(client: Client, case: str) -> None:
    """The message names the remedy and nothing of the host; a job exists; the allowance is unchanged."""
    name, content, fields, expected = REJECTED[case]
    answer = client.convert(name, content, headers=None, **fields)
    assert answer["success"] is False
    assert answer["status"] == "Failed"
    assert expected in answer["error"]
    assert not [leak for leak in LEAKS if leak in answer["error"]]
    assert (answer["needsUpgrade"], answer["limit"], answer["multiLayer"]) == (False, None, False)
    assert "downloadUrl" not in answer
    assert client.get(f"/api/geo/convert/jobs/{answer['jobId']}/status").json()["status"] == "Failed"
    assert client.usage() == (0, 0)


def test_a_source_without_a_system_needs_one(client: Client) -> None:
    """A shapefile without .prj is refused, and converted once `sourceEpsg` is given (interface 4.1)."""
    shapefile = client.download(client.convert("lakes.geojson", lakes(), targetEpsg=3857))
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(shapefile)) as complete, zipfile.ZipFile(buffer, "w") as without:
        for member in complete.namelist():
            if not member.endswith(".prj"):
                without.writestr(member, complete.read(member))
    refused = client.convert("lakes.zip", buffer.getvalue())
    assert refused["success"] is False
    assert "sourceEpsg" in refused["error"]
    assert client.convert("lakes.zip", buffer.getvalue(), sourceEpsg=3857)["success"] is True


def test_a_wrapped_file_is_unwrapped(client: Client) -> None:
    """A ZIP archive with one convertible file is converted as that file (interface 1)."""
    answer = client.convert("a.zip", archive(a_geojson=lakes(), readme_txt=b"x"), outputFormat="Kml")
    assert answer["success"], answer
    assert answer["inputFormat"] == "geojson"


def test_several_layers_into_a_single_layer_target_are_listed(client: Client) -> None:
    """The response is `multiLayer` with every layer and its feature count."""
    kml = b"""<kml xmlns="http://www.opengis.net/kml/2.2"><Document>
      <Folder><name>a</name><Placemark><Point><coordinates>1,2</coordinates></Point></Placemark></Folder>
      <Folder><name>b</name><Placemark><Point><coordinates>1,2</coordinates></Point></Placemark>
        <Placemark><Point><coordinates>3,4</coordinates></Point></Placemark></Folder></Document></kml>"""
    answer = client.convert("a.kml", kml)
    assert answer["multiLayer"] is True
    assert answer["targetFormat"] == "geojson"
    assert answer["layers"] == [{"layer": "a", "features": 1}, {"layer": "b", "features": 2}]
    chosen = client.convert("a.kml", kml, layer="b")
    assert (chosen["success"], chosen["featureCount"]) == (True, 2)
    assert client.convert("a.kml", kml, outputFormat="GeoPackage")["success"] is True


def test_coordinates_that_cannot_be_reprojected_fail_the_file(client: Client) -> None:
    """Points do not disappear: the file fails."""
    answer = client.convert("a.geojson", collection(feature(point(500, 500), n=1)), outputFormat="Csv", targetEpsg=3857)
    assert answer["success"] is False
