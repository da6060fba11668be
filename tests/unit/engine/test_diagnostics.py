"""GDAL's messages in plain words; the samples are messages of GDAL 3.6."""

import re

import pytest

from sandbox.verdict import Ending, Verdict
from service.engine.diagnostics import (
    EngineDefect,
    Subject,
    explain,
    find_changes,
    require_program_success,
    require_success,
)
from service.engine.jailed.exits import Exit
from service.errors import Rejection

SUBJECT = Subject(input="KML", target="GeoPackage", source_epsg=None, target_epsg=3857)
SAMPLES = [
    (
        "ERROR 1: Can't transform coordinates, source layer has no\ncoordinate system.  Use -s_srs to specify one.",
        "does not record its coordinate system",
    ),
    (
        "ERROR 1: PROJ: proj_create_from_database: crs not found\nERROR 1: Failed to process SRS definition: EPSG:999",
        "does not know the requested coordinate system",
    ),
    (
        "ERROR 1: Geometry extent outside of [-180.0,180.0]x[-90.0,90.0] bounds\nERROR 1: Unable to write feature 0",
        "sourceEpsg",
    ),
    (
        "ERROR 1: sqlite3_get_table(pragma table_xinfo('v')) failed: no such column: missing",
        "it uses a table, column or function that does not exist. Repair or drop the view",
    ),
    (
        "ERROR 1: Latitude 95.000000 is invalid.\nERROR 1: Terminating translation prematurely after failed",
        "A latitude is beyond 90 degrees, which GeoPackage cannot hold",
    ),
    (
        "ERROR 1: PROJ: webmerc: Invalid latitude\nERROR 1: Failed to reproject feature 0 (geometry probably out of",
        "EPSG:3857",
    ),
    (
        "ERROR 1: sqlite3_exec(UPDATE gpkg_contents SET min_x = Inf, min_y = 2) failed: no such column: Inf",
        "infinite or not numbers",
    ),
    (
        "ERROR 6: Coordinates with non-finite values are not allowed\nERROR 1: Unable to write feature 1 from layer a.",
        "infinite or not numbers",
    ),
    ("ERROR 1: Error occurred in ./ogr/ogrsf_frmts/openfilegdb/filegdbtable.cpp at line 910", "ArcGIS Pro 3.2"),
    (
        "ERROR 3: Failed to parse field definition in file a.mif\nFAILURE:\nUnable to open datasource `a.mif' with the",
        "LargeInt",
    ),
    ("ERROR 6: Too much accumulated memory in ODS parsing. Parsing stopped", "Save it as CSV"),
    ("ERROR 3: Unexpected EOF while reading attribute record from MID file.", "fewer rows than its .mif has objects"),
    ("ERROR 1: Too many fields. File probably corrupted", "than the 99 that are read of KML"),
    ("ERROR 1: more than 1000 layers", "more layers than can be converted"),
    ("ERROR 1: sqlite3_exec(...) failed: too many columns on t", "more columns than can be converted"),
    (
        "ERROR 1: Cannot encode M value\nERROR 1: Unable to write feature 0 from layer a.",
        "GeoPackage cannot hold a coordinate or measure (M) of the file that is missing",
    ),
    (
        "ERROR 7: TABPolyline: Geometry must contain at least 2 points.\nERROR 1: Unable to write feature 0 from layer",
        "a line of a single point, which GeoPackage cannot hold",
    ),
    (
        "ERROR 1: At least one of the required GeoPackage tables, gpkg_spatial_ref_sys or gpkg_contents, is missing",
        "give it the extension of SQLite",
    ),
    ("ERROR 1: Too many nested levels in geometry", "nested too deeply"),
    (
        "FAILURE:\nUnable to open datasource `in0.kml' with the following drivers.\n  -> `KML'\n  -> `GPKG'",
        "not a valid KML file",
    ),
    (
        "ERROR 1: XML parsing of GML file failed : not well-formed (invalid token) at line 3, column 2",
        "not a valid KML file",
    ),
    ("ERROR 1: sqlite3_open failed: file is not a database", "not a valid KML file"),
    ("ERROR 1: sqlite3_step() : out of memory", "more memory"),
    (
        "ERROR 6: Too deep XML nesting level (64). Set the OGR_GML_NESTING_LEVEL configuration option",
        "nested too deeply",
    ),
    ('ERROR 1: sqlite3_exec(CREATE TABLE "in0" (' + '"column_1" MEDIUMINT, ' * 2000, "more columns"),
    ("ERROR 6: Geometry type of 'Polygon' not supported in GPX.", "cannot hold some geometries"),
    ("ERROR 1: Unable to write feature 17 from layer in0.", "could not be written as GeoPackage"),
    ("something that nobody has seen before in /var/lib/geomill/job7", "could not be converted to GeoPackage"),
]


@pytest.mark.parametrize(("messages", "words"), SAMPLES)
def test_every_message_has_plain_words(messages: str, words: str) -> None:
    """Nothing of the message itself shows."""
    text = explain(messages, SUBJECT)
    assert words in text.replace("\n", " ")
    assert not any(part in text for part in ("ERROR", "in0", "/var", "-s_srs", "sqlite", "->"))
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("ending", "word"),
    [
        (Ending.WALL_TIME, "longer"),
        (Ending.CPU_TIME, "computing time"),
        (Ending.MEMORY, "memory"),
        (Ending.OUTPUT_SIZE, "larger"),
        (Ending.DISK_FULL, "disk space"),
        (Ending.SIGNAL, "crashed"),
    ],
)
def test_limits_are_told_as_such(ending: Ending, word: str) -> None:
    """The message says which limit a run exceeded."""
    with pytest.raises(Rejection, match=word):
        require_success(Verdict(ending=ending), SUBJECT)


def test_a_service_that_cannot_run_a_converter_is_no_fault_of_the_file() -> None:
    """It is a defect, for the log."""
    with pytest.raises(EngineDefect, match="no jail"):
        require_success(Verdict(ending=Ending.INTERNAL, detail="no jail"), SUBJECT)


@pytest.mark.parametrize(
    "messages",
    [
        "ERROR 6: Too much accumulated memory in ODS parsing. Parsing stopped",
        "ERROR 1: not well-formed",
        "ERROR 1: XML parsing of GML file failed : parsing aborted at line 1, column 917",
        "ERROR 1: XML parsing of /vsizip/{in0.xlsx}/xl/worksheets/sheet1.xml file failed : parsing aborted at line 1",
        "ERROR 1: In GetNextRawFeature(): sqlite3_step() : out of memory",
    ],
)
def test_exit_code_0_is_no_success_with_a_fatal_message(messages: str) -> None:
    """Rows would be missing silently."""
    with pytest.raises(Rejection):
        require_success(Verdict(ending=Ending.OK, exit_code=0, untrusted_stderr=messages.encode()), SUBJECT)


def test_harmless_messages_are_no_failure() -> None:
    """Drivers complain about much that does not matter."""
    messages = b"ERROR 6: DXF layer does not support arbitrary field creation, field 'a' not created.\nWarning 1: x"
    assert "DXF layer" in require_success(Verdict(ending=Ending.OK, exit_code=0, untrusted_stderr=messages), SUBJECT)


@pytest.mark.parametrize("reason", list(Exit))
def test_every_exit_of_our_programs_has_words(reason: Exit) -> None:
    """Only integers leave the jail, and each has a meaning."""
    with pytest.raises(Rejection) as caught:
        require_program_success(Verdict(ending=Ending.EXIT, exit_code=reason), SUBJECT)
    assert "{" not in caught.value.message


def test_a_program_of_ours_that_fails_otherwise_is_a_defect() -> None:
    """Its traceback goes to the log only."""
    with pytest.raises(EngineDefect, match="KeyError"):
        require_program_success(Verdict(ending=Ending.EXIT, exit_code=1, untrusted_stderr=b"KeyError: 'x'"), SUBJECT)


def test_columns_renamed_by_the_converter_are_told() -> None:
    """The converter considers names equal that differ only in case."""
    messages = "Warning 1: Field 'Name' already exists. Renaming it as 'Name2'\n"
    (warning,) = find_changes(messages)
    assert "'Name'" in warning
    assert "'Name2'" in warning


@pytest.mark.parametrize(
    ("text", "number", "told"),
    [
        ("1,5", "1", r"'1,5' became 1\."),
        ("\n 12,5\n", "12", r"'12,5' became 12\."),
        ("5' 6", "5", "became 5"),
        (" 34 ", "34.", None),
        ("\n34.50\n", "34.5", None),
    ],
)
def test_texts_in_columns_of_numbers_are_told_unless_they_are_the_number(
    text: str, number: str, told: str | None
) -> None:
    """Blanks and line ends around a number lose nothing, but may surround what is none."""
    message = f"Warning 1: Value '{text}' of field waypoints.ele parsed incompletely to real {number}\n"
    found = list(find_changes("Warning 1: Value 'x' for field y is too large\n" + message * 2))
    assert [re.search(told, warning) is not None for warning in found] == [True] if told else found == []


@pytest.mark.parametrize(("said", "told"), [("a.b", "b"), ("b", "b"), ("a.b.c", "a.b.c")])
def test_columns_of_misread_texts_are_named_as_the_file_does(said: str, told: str) -> None:
    """Of a column with a point in its name, only what follows that was named."""
    (warning,) = find_changes(f"Warning 1: Value 'x' of field {said} parsed incompletely to integer 0.\n")
    assert warning.startswith(f"Values of {told!r} were read as numbers")


@pytest.mark.parametrize("messages", ["ERROR 1: Unable to write feature 17 from layer in0.", "never seen before"])
def test_a_failure_to_read_does_not_blame_the_output(messages: str) -> None:
    """During reading there is no target yet, so another `outputFormat` would not help."""
    assert explain(messages, Subject(input="DXF")).startswith("The file is not a valid DXF file")


def test_coordinates_that_cannot_be_read_are_named() -> None:
    """They are the fault of no target."""
    message = "ERROR 1: sqlite3_exec(UPDATE gpkg_contents SET min_x = NaN, min_y = 2) failed: no such column: NaN"
    assert "infinite or not numbers" in explain(message, Subject(input="GeoPackage"))


def test_what_one_message_begins_no_other_ends() -> None:
    """A search for the end of each beginning in the whole text would occupy the service for seconds."""
    near, far = (f"Geometry type of {'a' * size} not supported" for size in (100, 1000))
    assert "cannot hold some geometries" in explain(near, SUBJECT)
    assert "cannot hold some geometries" not in explain(far, SUBJECT)
