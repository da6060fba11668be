"""A file that was whole once is converted or refused, whatever happened to it on its way."""

import pytest

from tests.hostile.answers import require_discreet
from tests.hostile.bait import Bait
from tests.hostile.damage import damaged
from tests.support.data import lakes
from tests.support.server import Client, Server

pytestmark = pytest.mark.usefixtures("unharmed")

FORMATS = {
    "GeoJson": "a.geojson",
    "Shapefile": "a.zip",
    "Csv": "a.csv",
    "Gml": "a.gml",
    "GeoPackage": "a.gpkg",
    "Gpx": "a.gpx",
    "Kml": "a.kml",
    "Kmz": "a.kmz",
    "FlatGeobuf": "a.fgb",
    "GeoJsonSeq": "a.geojsonl",
    "Dxf": "a.dxf",
    "Ods": "a.ods",
    "Xlsx": "a.xlsx",
    "SpatiaLite": "a.sqlite",
    "GeoParquet": "a.parquet",
}
"""Every format that is read, by the output that makes it; plain SQLite is read as SpatiaLite is."""


@pytest.mark.parametrize("output", FORMATS)
def test_a_damaged_file_is_converted_or_refused(hardened: Server, attacker: Client, bait: Bait, output: str) -> None:
    """Cut off anywhere, or with bits turned over, every file has an answer that tells nothing of the service."""
    whole = _whole(attacker, output)
    pieces = list(damaged(whole))
    answer = attacker.batch(*((FORMATS[output], content) for _, content in pieces), sourceEpsgs=["4326"] * len(pieces))
    for result, (damage, _) in zip(answer["results"], pieces, strict=True):
        require_discreet(result, hardened.data_dir, bait, FORMATS[output])
        assert result["success"] or result["error"], damage


def _whole(client: Client, output: str) -> bytes:
    """The lakes in that format, made by the service itself."""
    if output == "GeoJson":
        return lakes()
    answer = client.convert("a.geojson", lakes(), outputFormat=output)
    assert answer["success"], answer["error"]
    return client.download(answer)
