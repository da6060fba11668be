"""Makes the tables of docs/formats.md from the format table: `python -m service.formats.documentation FILE`.

For each kind of data, they state what the plan decides about such a dataset, so they cannot promise more than the
service does.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from service.errors import MultipleLayers, Rejection
from service.formats.cannot_hold import cannot_hold
from service.formats.datasets import make_datasets
from service.formats.facts import Crs, Facts, Field, FieldType, Layer
from service.formats.format import SHARED_EXTENSION, ColumnRule, Format, Packaging, Writer, reading_of, writing_of
from service.formats.layers import choose_layers
from service.formats.losses import find_losses, refuse_unrepresentable
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
        layers=(_layer(geometry_types={"Point": 2}, fields=(Field("name", FieldType.TEXT, 300, 1),)),)
    ),
    "dates with times": Facts(
        layers=(_layer(geometry_types={"Point": 2}, fields=(NAME, Field("at", FieldType.DATETIME))),)
    ),
}
COLUMN_RULES: Mapping[ColumnRule, str] = {
    ColumnRule.ANY: "any",
    ColumnRule.MEMBER: "any",
    ColumnRule.CELL: "no line ends, quotation marks or surrounding blanks",
    ColumnRule.XML: "XML names",
    ColumnRule.ELEMENT: "XML names",
    ColumnRule.GML: "XML names without `-`",
    ColumnRule.DBF: "10 bytes",
    ColumnRule.MAPINFO: "31 characters of A-Z, 0-9, `_`",
    ColumnRule.GEODATABASE: "62 letters, digits, `_`",
}
MARKS = """\
- `yes`: kept unchanged
- `warning`: converted, and a warning says what was left out, split or renamed
- `no`: refused
"""
BEGIN, END = "<!-- made by `./just docs` -->\n", "<!-- end of what is made -->\n"


def tables() -> str:
    """The tables of the page with their headings, in Markdown."""
    return "\n".join([*_inputs(), *_outputs(), *_limits(), *_kinds()])


def renew(path: Path, made: str) -> None:
    """Replace the text between the marks in a document by what is `made` now."""
    text = path.read_text(encoding="utf-8")
    path.write_text(renewed(text, made), encoding="utf-8")


def renewed(text: str, made: str) -> str:
    """Return a document in which the text between the marks is replaced."""
    return re.sub(f"(?s)(?<={re.escape(BEGIN)}).*(?={re.escape(END)})", lambda _: made, text)


def _inputs() -> Iterator[str]:
    yield "## Inputs\n"
    rows = [
        (row.title, row.token, uploaded_as(row), "yes" if row.reading.records_crs else "no: send `sourceEpsg`")
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
    system = f"always EPSG:{writing.epsg}" if writing.epsg else "`targetEpsg`"
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
    yield "Geomill refuses such data, or converts it and reports it in `warnings` with a count.\n"
    outputs: dict[str, list[str]] = {}
    for row in FORMATS:
        if row.writing is not None:
            aspects = cannot_hold(row.writing).items()
            limits = "".join(f"- **{aspect}**: {' · '.join(words)}\n" for aspect, words in aspects)
            outputs.setdefault(limits, []).append(str(row.name))
    yield from (f"### To {' or '.join(names)}\n\n{limits}" for limits, names in outputs.items())


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


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


if __name__ == "__main__":
    renew(Path(sys.argv[1]), tables())
