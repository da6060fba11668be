"""The format list says what this host can convert."""

from service.formats.table import FORMATS
from tests.support.server import Client


def test_every_format_has_a_row(client: Client) -> None:
    """All of them, with what they can be; a format that lacks something says what."""
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
