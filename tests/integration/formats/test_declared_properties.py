"""What columns declare of their values does not change these, and is told where it is left out."""

from pathlib import Path

from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_losses import database, read_again
from tests.support.converters import Converters

PLACES = ("東京都", "Zürich")


async def test_texts_are_not_cut_at_the_width_that_their_column_declares(either: Pipeline, tmp_path: Path) -> None:
    """SQLite stores longer ones, and GeoPackage counts characters, but drivers of other formats cut bytes."""
    path = await database(either, tmp_path, ["place TEXT(3)", "n INTEGER"], *((place, 1) for place in PLACES))
    done = await either.to("MapInfo", path)
    assert await read_again(either, done) == {"id": 0, "place": PLACES[0], "n": 1}
    assert done.output.warnings == ()


async def test_values_may_repeat_in_columns_that_do_not_allow_it(
    either: Pipeline, converters: Converters, tmp_path: Path
) -> None:
    """FlatGeobuf only says that they are unique."""
    path = await database(either, tmp_path, ["code TEXT"], ("first",), ("other",))
    with edited(path) as connection:
        (table,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        connection.execute(f'CREATE UNIQUE INDEX i ON "{table}" (code)')
    directory = converters.new_directory()
    (directory / "in.gpkg").write_bytes(path.read_bytes())
    assert await converters.ogr2ogr(directory, "-f", "FlatGeobuf", "a.fgb", "in.gpkg")
    file = directory / "a.fgb"
    file.write_bytes(file.read_bytes().replace(b"other", b"first"))
    done = await either.to("Csv", file)
    assert [row["code"] for row in readers.table(done.path)] == ["first", "first"]
