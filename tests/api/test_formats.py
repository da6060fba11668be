"""The format list shows what this host can convert."""

from service.formats.table import FORMATS
from tests.support.server import Client


def test_every_format_has_a_row(client: Client) -> None:
    """Each format, with the directions that it supports; an unavailable format states what is missing."""
    rows = client.get("/api/geo/formats").json()["formats"]
    assert [row["token"] for row in rows] == [entry.token for entry in FORMATS]
    for row in rows:
        assert set(row) == {
            "name", "token", "title", "extensions", "input", "output", "multiLayer", "available", "reason",
        }  # fmt: skip
        assert row["available"] == (row["reason"] is None)
    shapefile = next(row for row in rows if row["name"] == "Shapefile")
    assert shapefile == {
        "name": "Shapefile",
        "token": "shapefile",
        "title": "Shapefile",
        "extensions": [".zip", ".shp"],
        "input": True,
        "output": True,
        "multiLayer": True,
        "available": True,
        "reason": None,
    }
