"""Form fields: unknown names, names of formats, columns of tables (interface 2.6)."""

import pytest

from tests.support.data import lakes
from tests.support.server import Client

FILE = "/api/geo/convert/file"
GTFS = b"stop_id,oben,rechts\nA,50.93,6.95\n"


def test_unknown_fields_are_named_with_the_nearest_known_one(client: Client) -> None:
    """They change nothing, whether the conversion succeeds or fails; known fields are not listed."""
    answer = client.convert("lakes.geojson", lakes(), targetEPSG="3857", includeWallet="true", foo="x")
    assert answer["success"]
    assert answer["outputEpsg"] == 4326
    first, second = answer["warnings"][:2]
    assert first == "The field targetEPSG is unknown and was ignored; did you mean targetEpsg?"
    assert second == "The field foo is unknown and was ignored."
    failed = client.convert("a.csv", b"x,y\n1,2\n", sourceEPSG="4326")
    assert not failed["success"]
    assert "did you mean sourceEpsg?" in failed["warnings"][0]


def test_fields_in_the_query_are_named(client: Client) -> None:
    """They would change the result, and no form has them."""
    answer = client.post(f"{FILE}?outputFormat=Csv&targetepsg=3857", files={"file": ("a.geojson", lakes())}).json()
    assert answer["outputFormat"] == "shapefile"
    assert answer["warnings"][:2] == [
        f"{name} in the query was ignored; send it as a field of the form." for name in ("outputFormat", "targetEpsg")
    ]


def test_a_batch_names_unknown_fields_in_every_entry(client: Client) -> None:
    """Each entry lists them on its own."""
    answer = client.batch(("a.geojson", lakes()), ("b.geojson", lakes()), outputFormat="Kml")
    for entry in answer["results"]:
        assert "did you mean outputFormats?" in entry["warnings"][0]


def test_the_analysis_names_unknown_fields(client: Client) -> None:
    """It has no fields except the file."""
    response = client.post("/api/geo/convert/analyze", files={"file": ("a.geojson", lakes())}, data={"foo": "x"})
    assert response.json()["warnings"][0] == "The field foo is unknown and was ignored."


@pytest.mark.parametrize("name", ["gpkg", ".GPKG", "geopackage", "GeoPackage"])
def test_formats_are_named_by_name_token_or_extension(client: Client, name: str) -> None:
    """In any case."""
    assert client.convert("lakes.geojson", lakes(), outputFormat=name)["outputFormat"] == "gpkg"


def test_columns_are_named_by_fields(client: Client) -> None:
    """In pairs; half of a pair is an invalid request."""
    answer = client.convert("a.csv", GTFS, sourceEpsg="4326", xField="rechts", yField="oben")
    assert (answer["geometryType"], answer["featureCount"]) == ("Point", 1)
    response = client.post("/api/geo/convert/file", files={"file": ("a.csv", GTFS)}, data={"xField": "rechts"})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_parameter")
    assert "yField" in response.json()["detail"]
