"""The formats page of the documentation, made from the format table: `python -m service.formats.documentation`.

For each kind of data, the page states what the plan decides about such a dataset, so it cannot promise more than the
service does.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence

from service.errors import MultipleLayers, Rejection
from service.formats.cannot_hold import cannot_hold
from service.formats.datasets import make_datasets
from service.formats.facts import MAX_LAYERS, Crs, Facts, Field, FieldType, Layer
from service.formats.format import SHARED_EXTENSION, ColumnRule, Format, Packaging, Writer, reading_of, writing_of
from service.formats.layers import choose_layers
from service.formats.losses import find_losses, refuse_unrepresentable
from service.formats.plan import MAX_DATASETS
from service.formats.registry import by_token
from service.formats.request import ConversionRequest
from service.formats.table import FORMATS

KNOWN = Crs(known=True, epsg=4326)
NAME = Field("name", FieldType.TEXT)


def _layer(name: str = "data", **facts: object) -> Layer:
    filled = {"features": 2, "crs": KNOWN, "fields": (NAME,), **facts}
    return Layer(name=name, **filled)  # type: ignore[arg-type]  # each fact is a field of it


KINDS: Mapping[str, Facts] = {
    "points": Facts(layers=(_layer(geometry_types={"Point": 2}),)),
    "lines": Facts(layers=(_layer(geometry_types={"LineString": 2}),)),
    "areas": Facts(layers=(_layer(geometry_types={"Polygon": 2}),)),
    "multipoints": Facts(layers=(_layer(geometry_types={"MultiPoint": 2}),)),
    "mixed": Facts(layers=(_layer(geometry_types={"Point": 1, "Polygon": 1}),)),
    "collections": Facts(
        layers=(
            _layer(geometry_types={"GeometryCollection": 2}, collection_parts={"MultiPoint": 2, "MultiLineString": 2}),
        )
    ),
    "3D": Facts(layers=(_layer(geometry_types={"Point": 2}, has_z=True),)),
    "some without geometry": Facts(layers=(_layer(geometry_types={"Point": 1}, null_geometries=1),)),
    "table": Facts(layers=(_layer(geometry_types={}, null_geometries=2),)),
    "no features": Facts(layers=(_layer(features=0),)),
    "two layers": Facts(
        layers=(_layer("a", geometry_types={"Point": 2}), _layer("b", geometry_types={"LineString": 2}))
    ),
    "long names": Facts(layers=(_layer(geometry_types={"Point": 2}, fields=(Field("population_2024"), Field("a b"))),)),
    "texts over 254 bytes": Facts(
        layers=(_layer(geometry_types={"Point": 2}, fields=(Field("name", FieldType.TEXT, 300, 1), NAME)),)
    ),
    "dates with times": Facts(
        layers=(_layer(geometry_types={"Point": 2}, fields=(NAME, Field("at", FieldType.DATETIME))),)
    ),
}
COLUMN_RULES: Mapping[ColumnRule, str] = {
    ColumnRule.ANY: "any",
    ColumnRule.CELL: "no line ends or quotation marks, no blanks around them",
    ColumnRule.XML: "XML names",
    ColumnRule.GML: "XML names without -",
    ColumnRule.DBF: "10 bytes",
    ColumnRule.MAPINFO: "31 of A-Z, 0-9, _",
    ColumnRule.GEODATABASE: "62 letters, digits, _",
}
INTRODUCTION = """\
# Formats

`python -m service.formats.documentation` makes this page from the format table; a test keeps it current.

Every input converts to every output except its own format. What an output cannot hold at all is refused with the
reason; what it leaves out, splits or renames is reported in `warnings`.
"""
MARKS = """\
`yes`: kept unchanged. `warning`: converted, and a warning says what was left out, split or renamed. `no`: refused.
"""
NOTES = """\
## What to know

- **Coordinates** of text formats are x (longitude, easting), then y (latitude, northing). GeoJSON, GeoJSON sequences,
  KML, KMZ and GPX are always in EPSG:4326.
- **Packed inputs**: a ZIP around one file, and `.gz` around one (`cities.csv.gz`), are unpacked. MapInfo is read from a
  ZIP as `.tab` or `.mif` with their companions, a File Geodatabase from a ZIP with its folder; a `.shp` alone is read
  without attributes. TopoJSON and Esri JSON are detected by their members, whatever their extension.
- **Numbers** that exceed the type with which they are read become infinite, or in KML the largest whole number of 32
  bits and in XLSX and ODS that of 64 bits; a warning reports them. Text formats are written with 15 significant digits,
  GeoJSON with 7 decimals of a degree. Blanks around values of typed columns are lost when KML is read, those at the
  beginning of texts when GML is, and those around names of columns when CSV is.
- **Coordinates in XML** that are no numbers, such as `52,5` in GPX and `1,2; 3,4` in KML, are read in part, as 0 or not
  at all; a warning reports them. Of long lists, the first megabyte may be all that is examined.
- **KML** is read without styles, altitude modes, addresses, phone numbers, network links and images of overlays, and
  beside a `Schema`, without data that it does not declare; a warning reports each. Data with the name of an element,
  such as `NAME` beside `<name>`, is renamed if it has other content. Several
  features in `<kml>` without a document around them are all read; of several geometries in a feature without a
  MultiGeometry around them, the last is read. Warnings report both. GDAL's driver LIBKML reads it, which Debian has
  dropped since GDAL 3.13: there, the GDAL in the wheel of pyogrio does, which `./just setup` installs.
- **Descriptions of a file** in GPX (name, description, author, copyright, keywords), in documents and folders of
  KML (description, author), in GML (name, description), in GeoPackage (descriptions of layers, metadata), in
  FlatGeobuf (title, description, metadata) and in workbooks (title, subject, description, keywords, category,
  comments, addresses of links) are left out, and a warning reports it; dates, bounds and the program that wrote the
  file are left out without one.
- **Tables with coordinates**: CSV, XLSX and ODS store a layer of points in the columns `X`, `Y` (and `Z`), all other
  layers in a column `WKT`. When they are read, a column of WKT, hexadecimal WKB or GeoJSON is found by its values, or a
  pair of columns by their names: x/y, lon/lat, longitude/latitude, easting/northing, Laenge/Breite and the like in
  twenty languages, in any case, with a prefix (`stop_lat`) or a unit (`Latitude (deg)`). `xField` and `yField`, or
  `wktField`, name others. These columns become the geometry; a cell that is not a coordinate keeps its text in a
  column, and a warning reports it. The SRID of extended WKT and WKB counts as recorded. If sourceEpsg was sent and no
  columns were found, the file is refused.
- **Read back**: a result is read again and compared with what was inspected: features, geometries, Z and M, columns,
  filled values, sums of numbers. A GeoJSON document or sequence is scanned; other results are read by their own driver,
  KML by LIBKML. GPX and DXF are compared without their columns, MapInfo without its values, XLSX and ODS without their
  geometries, and results of more than 300,000 cells without values, except Shapefiles without elevations and FlatGeobuf
  files without measures or times that the fork server's runs have written: these are counted in their bytes or columns,
  in any size. Rows of an ODS in which GDAL stops reading are counted in its text. A difference is a warning, and so is
  a result that cannot be read back; one that holds none of its features or geometries is refused. In WKT, only
  geometries are compared: it holds nothing else.
- **Measures** (M) are kept in GeoPackage, Shapefile, FlatGeobuf, SpatiaLite, OpenFileGDB and in columns of WKT.
- **Unknown systems**: a file that records no system, or GeoJSON whose member `crs` names one that is not known, is
  refused unless `sourceEpsg` says which it is; `keepCoordinates=true` writes coordinates unchanged if the output does
  not require a system.
- **CSV** may be in UTF-8, UTF-16 or Windows-1252, with comma, semicolon, tab or bar, with or without a header. A first
  row with numbers counts as data, unless they are consecutive years (2019, 2020) above other numbers. Types
  follow from all rows; values with leading zeros or more than 18 digits stay text, and
  so do columns with days or hours that do not exist, whole numbers of more than 15 digits beside decimals, or commas
  before three digits that may separate thousands. Coordinates with such commas are refused, also in sheets; in a file
  with semicolons, they are decimal commas. There, points before three digits may separate thousands if other numbers
  have decimal commas; such columns stay text, and such coordinates are refused.
- **Time zones** are kept in quarters of an hour. CSV and GeoJSON keep times in others, such as +05:07, as texts. GPX,
  KML, GeoPackage, SQLite and FlatGeobuf are read without their minutes, or without these zones, and those of
  Parquet files, also in zones with names, are converted to UTC; a warning reports it.
- **XLSX** says by the format of a cell whether a number is a date (a day, month or year) or a time of day (an hour).
  Of the built-in East Asian formats, some are dates in one language and times of day in another: they count as times of
  day if all their cells have numbers below 1.
  Elapsed time is a number of days. Milliseconds are kept, but 0.999 s becomes the next second; dates in the first
  row become numbers. Dates in the ISO notation, as "Strict Open XML" has them, and errors such as `#N/A` are texts.
  Dates before March 1900 are a day earlier than Excel shows them. Warnings report all five. Texts that formulas
  result in, and that look like numbers, are texts.
- **Shapefile**: names are cut to 10 bytes of UTF-8 between characters, and numbered if they collide; texts are cut at
  254 bytes; text is UTF-8 with a .cpg; dates with times are text. Mixed geometries become one shapefile per family. A
  .dbf that does not have one record for each shape is refused; the .shx says which shape belongs to
  a record, and if it is damaged, their order does. GDAL before 3.9 reads columns of the type L (true or false) as
  texts, such as `T` and `F`. Integers of more than 18 digits are read exactly if they fit into 64 bits. Warnings
  report values that are not of the type of their column, such as texts or impossible dates, columns of types that the
  format does not define, such as memos, and texts that look like UTF-8 although another encoding is declared.
- **KML** stores the column `name` in an element of its own, which is read as `Name`. Dates are text, and so are columns
  of integers with values beyond 32 bits; booleans are numbers. A KMZ is written with one document; when
  it is read, all documents with features are converted, and layers with the same name are numbered.
- **Curves** become lines with segments of four degrees if a target has no curves, also inside collections.
- **GPX**: points are waypoints, lines are tracks; other columns are extensions, and so are those with the name of an
  element that does not hold their values, such as `ele` with texts or 1e-20, which becomes `ele_`. Extensions that look
  like numbers are read as 32-bit numbers, and a warning reports it. Route and track points do not count as features;
  databases get them as separate layers, other targets if the field `layer` names one. A warning reports what only these
  points hold, such as times.
- **Domains** and subtypes of OpenFileGDB, and enumerations of GeoPackage, say what codes in columns stand for: columns
  keep the codes, and a warning reports the lists.
- **OpenFileGDB** rounds elevations and measures to 0.0001. It stores times in UTC, without saying
  so. When it is read, times before 1970 may be one second late; a warning reports them.
- **TopoJSON** is read as the GeoJSON that it stands for; ids become a column `id`. A file in which many geometries use
  the same lines so often that it would become a hundred times as large is refused. A member `crs` is used, as
  in GeoJSON.
- **FlatGeobuf** sorts features by location, for its index; dates become dates with times.
- **MapInfo TAB** cannot record every coordinate system; a warning says if a result records none, or another one.
  It rounds coordinates to 2e-7 degrees or 2 cm, less if they need not be transformed; coordinates that are too
  large for that are refused. Text is Windows-1252 if that can represent it, otherwise UTF-8, which the format cannot
  declare.
- **Encodings**: texts that are not in the one that a `.cpg` or the charset of a `.mif` declares, or not in UTF-8 in
  GeoPackage, SQLite and FlatGeobuf, are read as Windows-1252; UTF-8 that is cut within its last character is read as
  UTF-8 with U+FFFD there. A warning reports their number and the first.
- **Encodings of XML**: KML, GPX and GML may declare UTF-8, Windows-1250 to 1258, ISO 8859, KOI8 and the usual ones of
  China, Japan and Korea. Text that is not UTF-8, in a file that declares no other encoding, is taken for Windows-1252;
  a warning reports it. At most 128 MiB are converted from other encodings than UTF-8.
- **GML** is 3.2 without a schema file; types follow from the values when it is read. The bounds of its features, and
  any columns `lowerCorner` and `upperCorner`, are left out. Each geometry is read in the system that it or its parts
  name, in any notation, otherwise in that of the collection or of the envelope around all features. A layer whose
  features are in several systems is refused, and the systems are named.
- **Wkt** is one geometry per line, `GEOMETRYCOLLECTION EMPTY` for a feature without geometry.
- **DXF** without `EOF` at its end is incomplete and refused; so is binary DXF. From DXF 2007 on its text is UTF-8;
  before, it is in the code page that it names. Other text is taken for Windows-1252, and a warning reports it.
  Characters by their codes (`\\U+4E2D`) are read. Blocks become their parts: a warning reports that their names and
  the tags of their attributes are left out.
- **Mercator's projection** (EPSG:3857, 3395): latitudes beyond 85.06 degrees are converted, and a warning reports them.
- **Far from a projection's area**: features whose coordinates mean nothing there, because the way back leads more than
  1 m elsewhere (100 m if the datum changes), or because they are farther from its origin than the Earth is long around,
  are converted, and a warning reports their number and the first. So are those 2,000 km and more from the central
  meridian of a Transverse Mercator projection, where lengths are at least 5 % too long. Coordinates slightly beyond the
  area, such as those of a neighboring UTM zone, are right.
- **Esri JSON** may name its system by a code of Esri's, such as 102003, or of EPSG's.
- **UTF-16** is read in KML, GPX and GML, and in CSV and WKT with a byte order mark; other formats and files are
  refused.
- **SQLite** is read with all its tables except those of SpatiaLite, and the first geometry of a row. A warning reports
  views, virtual tables and further geometries.
- **GeoPackage, SQLite**: a column gets a type that holds all its values if it declares none that does: one with texts
  beside numbers becomes a column of texts, and so does one with binary values beside others, as hexadecimal digits; a
  warning reports both. The key that numbers the rows of a table is left out if it counts from 0 or 1 without gaps, and
  becomes a column otherwise. Only if it has the name `fid` or `ogc_fid`, which programs give to numbers of their own,
  is it left out in any case, and reported if there are gaps.

## Memory and size

A converter may use {memory} MiB and {seconds} seconds by default. Most formats are streamed: a file of 100 MB takes 60
to 180 MiB whatever it holds, unless a single feature is that large. These need more:

| what | works | fails, and how |
|---|---|---|
| XLSX, written | 1,000,000 rows of 10 columns (70 MB of CSV): 440 MiB, 51 s | above 1,048,575 rows: refused |
| ODS, written | the same: 440 MiB, 44 s | above 1,048,575 rows: refused |
| XLSX, read | 1,000,000 rows of 45 columns (74 MB): 1,500 MiB, 114 s; both go with the cells | time |
| ODS, read | 50,000 rows of 10 columns | 60,000 rows: the reader's own guard; send CSV or XLSX |
| GML of many types | 100 MB of {layers} types: 40 MiB, 55 s to KML | more types: refused |
| its types in turn | 100 MB of 10 types: 29 MiB, 15 s; 25 MB of 100: 24 s | 100 MB of 100 types: time |
| many layers, written | {datasets}: 51 s of 100 MB to GeoPackage | more: refused, but for KML, KMZ, GML and GPX |
| KML, KMZ, read | 100 MB: 850 MiB, 8 times the file | memory |
| FlatGeobuf, written | 100 MB of GeoJSON: 150 MiB, its index | |
| GeoParquet | 100 MB of GeoJSON: 250 MiB, batches of 16,384 rows | |
| GeoJSON with one feature | 86 MB: 1,940 MiB, a feature is read whole | memory |

Seconds are CPU time of all runs of a conversion; each run may take {seconds}, all of them together ten minutes.
`./just bench sizes` repeats the first six rows on a host, in the sandbox and with the limits of the settings.

A conversion that exceeds these limits ends with an error that says so, and is not charged.
"""


def document(memory_mib: int, wall_seconds: float) -> str:
    """The page, in Markdown."""
    limits = {"datasets": MAX_DATASETS, "layers": f"{MAX_LAYERS:,}"}
    notes = NOTES.format(memory=memory_mib, seconds=int(wall_seconds), **limits)
    sections = [INTRODUCTION, *_inputs(), *_outputs(), *_limits(), *_kinds(), *_pairs(), notes]
    return "\n".join(sections)


def _inputs() -> Iterator[str]:
    yield "## Inputs\n"
    rows = [
        (row.title, row.token, uploaded_as(row), "yes" if row.reading.records_crs else "no: send sourceEpsg")
        for row in FORMATS
        if row.reading is not None
    ]
    yield _table(("format", "token", "uploaded as", "records its coordinate system"), rows)


def uploaded_as(row: Format) -> str:
    """The extensions of a format, and what a ZIP must contain."""
    reading = reading_of(row)
    packed = [" ".join((bundle.main, *bundle.required)) for bundle in reading.bundles]
    packed += [f"a folder {reading.folder.extension}"] if reading.folder is not None else []
    plain = [extension for extension in row.extensions if extension != SHARED_EXTENSION]
    return ", or ".join([*([" ".join(plain)] if plain else []), *(f".zip of {inside}" for inside in packed)])


def _outputs() -> Iterator[str]:
    yield "## Outputs\n"
    yield _table(
        ("outputFormat", "token", "delivered as", "layers", "coordinate system", "column names", "needs"),
        [_output(row) for row in FORMATS if row.writing is not None],
    )


def _output(row: Format) -> tuple[str, ...]:
    writing = writing_of(row)
    system = f"always EPSG:{writing.epsg}" if writing.epsg else "targetEpsg"
    return (
        str(row.name),
        row.token,
        f"{writing.extension} ({row.title}, zipped)" if writing.delivery is Packaging.ARCHIVE else writing.extension,
        "several" if writing.multi_layer else "one",
        system if writing.records_crs else f"{system}, not recorded",
        COLUMN_RULES[writing.column_names] if writing.attributes is None else "none kept",
        _needs(row),
    )


def _needs(row: Format) -> str:
    writing = writing_of(row)
    if not writing.driver_is_optional:
        return ""
    instead = ", or pyarrow and pyogrio" if writing.writer is Writer.PARQUET else ""
    return f"a GDAL that writes {writing.driver}{instead}"


def _limits() -> Iterator[str]:
    yield "## What each output cannot hold\n"
    yield "Wherever it occurs, it is refused, or reported in `warnings` with its count.\n"
    rows = [(str(row.name), "; ".join(cannot_hold(row.writing))) for row in FORMATS if row.writing is not None]
    yield _table(("outputFormat", "cannot hold"), rows)


def _kinds() -> Iterator[str]:
    yield "## What each output does with each kind of data\n"
    yield MARKS
    outputs = [row for row in FORMATS if row.writing is not None]
    rows = [(str(row.name), *(judge(row, facts) for facts in KINDS.values())) for row in outputs]
    yield _table(("outputFormat", *KINDS), rows)


def judge(target: Format, facts: Facts) -> str:
    """What `target` does with a dataset: "yes", "warning" or "no"."""
    try:
        layers, warnings = choose_layers(by_token("gpkg"), target, facts, ConversionRequest())
        refuse_unrepresentable(target, layers)
    except MultipleLayers:
        return "no: choose a `layer`"
    except Rejection:
        return "no"
    return "warning" if warnings or find_losses(target, make_datasets(target, "data", layers)) else "yes"


def _pairs() -> Iterator[str]:
    yield "## Every input into every output\n"
    yield "For a layer of points; `same` is refused, because the file is in that format already.\n"
    outputs = [row for row in FORMATS if row.writing is not None]
    rows = [
        (row.title, *("same" if row.token == target.token else judge(target, KINDS["points"]) for target in outputs))
        for row in FORMATS
        if row.reading is not None
    ]
    yield _table(("input", *(str(row.name) for row in outputs)), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document(memory_mib=2560, wall_seconds=120))
