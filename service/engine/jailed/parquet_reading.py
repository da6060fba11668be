"""Converts GeoParquet to a GeoPackage if GDAL has no driver for it: pyarrow reads, pyogrio writes. Runs in the sandbox.

Streams batches; never holds the whole file.
"""

import json
import re
import sqlite3
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types
from pyogrio import write_arrow

from service.engine.jailed.arrow_columns import (
    count_binary,
    count_emptied,
    count_foreign,
    count_infinite,
    count_infinite_in_lists,
    count_moved,
    count_nans,
    count_repeated,
    count_rounded,
    count_spelled_in_lists,
    count_unheld,
    count_zeros,
    former_type,
    mapped,
    plain,
    storage,
    to_periods,
    without_dictionary,
    without_late_fractions,
)
from service.engine.jailed.crs84 import CRS84, WGS84_CODES, identifier
from service.engine.jailed.exits import Exit
from service.engine.jailed.geoarrow import DEPTHS, declared_columns, logical_columns, to_wkb
from service.engine.jailed.gpkg import FID, GEOMETRY, quoted
from service.engine.jailed.parquet_columns import described_index, part_of, said_by_pandas, written_names

GEO = b"geo"
BATCH_ROWS = 16_384
LAYER = "in0"
CRS_TEXT = re.compile(
    r"\s*(?:(?:GEOG|GEOD|PROJ|COMPOUND|BOUND|COMPD|VERT)(?:CRS|_?CS)\s*\[|EPSG:\d+\s*$|OGC:CRS84\s*$)", re.IGNORECASE
)
"""WKT, which drafts of the format used for the system, or a code; never the name of a file or an address."""
CODES_OF_TEXTS = {"OGC:CRS84": "EPSG:4326"}
Changes = dict[str, Counter[str]]
Renamed = list[tuple[str, str]]
FormerTypes = dict[str, str]
UNSIGNED, MOST_SIGNED = "unsigned", 2**63 - 1
PLANAR = "planar"
COUNTS: Mapping[str, Callable[[pa.Array], int]] = {
    "rounded": count_rounded,
    "moved": count_moved,
    "unheld": count_unheld,
    "nan": count_nans,
    "infinite_in_lists": count_infinite_in_lists,
    "spelled_in_lists": count_spelled_in_lists,
    "foreign": count_foreign,
    "zeros": count_zeros,
    "repeated": count_repeated,
}
"""The kinds of changes, and how many of the values in an array are changed so."""
COUNTS_OF_TABLES: Mapping[str, Callable[[pa.Array], int]] = {
    **COUNTS,
    "emptied": count_emptied,
    "infinite": count_infinite,
    "spelled": count_binary,
}
"""The same in a table without geometry, which is written as text to find its geometry."""
UNREAD, CURVED, SECOND = OF_GEOMETRIES = ("unread", "curved", "second")
"""Geometries that are none, those whose edges are no straight lines, and those of further columns."""
DESCRIBING = frozenset(
    {b"title", b"description", b"abstract", b"comment", b"keywords", b"alias", b"label", b"long_name"}
)
"""The names under which programs keep what users say of a file or a column."""
BOXES = frozenset({"xmin", "ymin", "zmin", "xmax", "ymax", "zmax"})
"""The members of a column that only says where geometries are."""
POINTS = pa.array(
    [
        bytes([order]) + struct.pack("<I" if order else ">I", kind + dimensions)
        for order in (0, 1)
        for kind in (1, 4)
        for dimensions in (0, 1000, 2000, 3000)
    ],
    pa.binary(),
)
"""How the WKB of geometries without edges begins."""
MALFORMED = (
    pa.ArrowException,
    OSError,
    ValueError,
    struct.error,
    RecursionError,
    AttributeError,
    TypeError,
    LookupError,
)
"""What pyarrow raises, and what follows from metadata that does not match the format."""
TOO_LARGE = "overflowed binary array capacity"
"""What pyarrow says of texts that take more than 2 GiB in a batch, which no run has."""
ENCRYPTED = re.compile(r"encrypted metadata|[Cc]annot decrypt")
"""What it says of files that are encrypted as a whole, or have columns that are."""


def main(parquet: str, work_file: str, sheets_file: str) -> dict[str, object]:
    """Write the content of `parquet` to `work_file`, or, as a table, to `sheets_file` if it declares no geometry.

    Returns, for each kind of change, the number of values per column, the names of columns that get others, the types
    that change, and how many columns may not miss values, how many have titles, whether geometries are of an epoch, and
    how often the file describes itself.
    """
    changes: Changes = {kind: Counter() for kind in (*COUNTS_OF_TABLES, *OF_GEOMETRIES)}
    try:
        file = pq.ParquetFile(parquet, memory_map=False, pre_buffer=False)  # reading ahead takes threads
        geo = json.loads((file.metadata.metadata or {}).get(GEO, b"null")) or {}
        columns = geo.get("columns", {}) if geo else declared_columns(file.schema_arrow) or logical_columns(file)
        primary = str(geo.get("primary_column")) if geo else next(iter(columns), "")
        if primary in columns:
            renamed, was = _read_features(file, columns, (primary, work_file), changes)
        else:
            renamed, was = _read_table(file, sheets_file, changes)
    except MemoryError:
        raise
    except MALFORMED as error:
        if TOO_LARGE in str(error):
            raise MemoryError from None
        sys.exit(Exit.ENCRYPTED if ENCRYPTED.search(str(error)) else Exit.DAMAGED)
    counted = {kind: +columns for kind, columns in changes.items()}
    schema = file.schema_arrow
    beside = {
        "rules": sum(not field.nullable and field.name not in columns for field in schema),
        "epochs": int(primary in columns and bool(columns[primary].get("epoch"))),
        "titles": sum(bool(_descriptions(field.metadata)) for field in schema),
        "said": _descriptions(schema.metadata) + bool(said_by_pandas(file).get("attributes")),
    }
    return {**counted, "renamed": renamed, "was": was, **beside}


def _descriptions(metadata: Mapping[bytes, bytes] | None) -> int:
    """How many texts of `metadata` describe data for a reader, not for a program."""
    return sum(name.lower() in DESCRIBING and bool(text.strip()) for name, text in (metadata or {}).items())


def _count(
    changes: Changes, name: str, values: pa.Array, counts: Mapping[str, Callable[[pa.Array], int]] = COUNTS
) -> None:
    for kind, count in counts.items():
        changes[kind][name] += count(values)


def _read_table(file: Any, sheets_file: str, changes: Changes) -> tuple[Renamed, FormerTypes]:
    intervals = _intervals(file)

    def convert(name: str, values: pa.Array) -> pa.Array:
        if name in intervals:
            return to_periods(values)
        _count(changes, name, values, COUNTS_OF_TABLES)
        return _finite(plain(values, binary=lambda same: mapped(same, lambda value: value.hex().upper())))

    return _write_gpkg(file, range(len(file.schema_arrow)), convert, sheets_file, {})


def _read_features(
    file: Any, columns: Mapping[str, Any], names_and_file: tuple[str, str], changes: Changes
) -> tuple[Renamed, FormerTypes]:
    primary, work_file = names_and_file
    column = columns[primary]
    covering = column.get("covering", {}).get("bbox", {}).get("xmin", [""])[0]
    fields = enumerate(file.schema_arrow)
    places = [place for place, field in fields if field.name != covering or not _is_box(field.type)]
    encoding = str(column.get("encoding", "WKB")).casefold()
    if encoding != "wkb" and encoding not in DEPTHS:
        sys.exit(Exit.UNKNOWN_GEOMETRY)
    intervals = _intervals(file)

    def convert(name: str, values: pa.Array) -> pa.Array:
        if name == primary:
            geometries = _geometry(values, encoding)
            changes[UNREAD][primary] += pc.sum(pc.greater(pc.binary_length(geometries), 0)).as_py() or 0
            if column.get("edges", PLANAR) != PLANAR:
                changes[CURVED][primary] += _count_edged(geometries)
            return geometries
        if name in columns:
            changes[SECOND][name] += len(values) - int(values.null_count)
        if name in intervals:
            return to_periods(values)
        _count(changes, name, values)
        return plain(values, binary=lambda same: same)

    geometry = {"geometry_name": primary, "crs": _crs_text(column)}
    written = _write_gpkg(file, places, convert, work_file, geometry)
    changes[UNREAD][primary] -= _written_geometries(work_file)
    return written


def _is_box(kind: Any) -> bool:
    return types.is_struct(kind) and BOXES.issuperset(kind.field(place).name for place in range(kind.num_fields))


def _count_edged(geometries: pa.Array) -> int:
    """How many are no points."""
    filled = geometries.drop_null()
    return len(filled) - int(pc.sum(pc.is_in(pc.binary_slice(filled, 0, 5), POINTS)).as_py() or 0)


def _written_geometries(work_file: str) -> int:
    with closing(sqlite3.connect(f"file:{work_file}?mode=ro", uri=True)) as connection:
        return int(connection.execute(f"SELECT count({GEOMETRY}) FROM {LAYER}").fetchone()[0])  # noqa: S608 -- ours


def _intervals(file: Any) -> set[str]:
    """The columns of INTERVAL, which no type of Arrow tells from other bytes."""
    columns = map(file.schema.column, range(len(file.schema.names)))
    return {column.path for column in columns if column.converted_type == "INTERVAL"}


def _former_types(file: Any) -> FormerTypes:
    """The columns that get another type; those of whole numbers without a sign do if one needs the last bit."""
    former = {field.name: former_type(field.type) for field in file.schema_arrow} | dict.fromkeys(
        _intervals(file), "duration"
    )
    unsigned = [name for name, kind in former.items() if kind == UNSIGNED]
    beyond = set()
    for batch in file.iter_batches(BATCH_ROWS, columns=unsigned, use_threads=False) if unsigned else ():
        beyond |= {name for name in unsigned if (pc.max(batch[name]).as_py() or 0) > MOST_SIGNED}
    return {name: kind for name, kind in former.items() if kind and (kind != UNSIGNED or name in beyond)}


def _write_gpkg(
    file: Any,
    places: Sequence[int],
    convert: Callable[[str, pa.Array], pa.Array],
    gpkg: str,
    geometry: Mapping[str, str | None],
) -> tuple[Renamed, FormerTypes]:
    """Write the columns at some `places`; return the names of those that get others, with these, and former types."""
    names = [file.schema_arrow.names[place] for place in places]
    index = described_index(file)
    data = [*(name for name in names if name != geometry.get("geometry_name")), *index]
    written = written_names(data)
    left = iter(written)
    named = [GEOMETRY if name == geometry.get("geometry_name") else next(left) for name in (*names, *index)]
    rows = 0
    former = _former_types(file)
    fractions: dict[str, list[tuple[int, int]]] = {}

    def converted(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal rows
        read = [
            _signed(without_dictionary(batch.column(place)), former.get(name))
            for name, place in zip(names, places, strict=True)
        ]
        values = [convert(name, column) for name, column in zip(names, read, strict=True)]
        for number, name in enumerate(named[: len(names)]):
            values[number], late = without_late_fractions(values[number])
            fractions.setdefault(name, []).extend((milliseconds, rows + 1 + place) for place, milliseconds in late)
        values += [part_of(numbers, rows, batch.num_rows) for numbers in index.values()]
        rows += batch.num_rows
        return pa.record_batch(values, names=named)

    empty = converted(pa.RecordBatch.from_pylist([], schema=file.schema_arrow))
    batches = map(converted, file.iter_batches(BATCH_ROWS, use_threads=False))
    failures: list[Exception] = []
    try:
        _write(
            pa.RecordBatchReader.from_batches(empty.schema, _noting(batches, failures)),
            gpkg,
            {**geometry, "geometry_name": GEOMETRY} if geometry else {},
        )
    except RuntimeError:
        raise failures[0] if failures else ValueError from None
    _add_fractions(gpkg, fractions)
    was = {new: former[old] for old, new in zip(names, named, strict=False) if old in former and new != GEOMETRY}
    return [pair for pair in zip(data, written, strict=True) if pair[0] != pair[1]], was


def _add_fractions(gpkg: str, fractions: Mapping[str, Sequence[tuple[int, int]]]) -> None:
    """Add to times of whole seconds what `without_late_fractions` took from them: by column, milliseconds and row.

    Some drivers write these with three zeros behind the point.
    """
    with closing(sqlite3.connect(gpkg)) as connection, connection:
        for column, late in fractions.items():
            time = quoted(column)
            finer = f"substr({time}, 1, 19) || printf('.%03d', ?) || ltrim(substr({time}, 20), '.0')"
            connection.executemany(f"UPDATE {LAYER} SET {time} = {finer} WHERE {FID} = ?", late)  # noqa: S608 -- quoted


def _signed(values: pa.Array, former: str | None) -> pa.Array:
    """`values`, those without a sign as such with one unless their column had them as its `former` type."""
    return values.cast(pa.int64()) if types.is_uint64(values.type) and former != UNSIGNED else values


def _noting(batches: Iterator[pa.RecordBatch], failures: list[Exception]) -> Iterator[pa.RecordBatch]:
    """Yield `batches`, and store the error that ends them in `failures`: the consumer reports only that they ended."""
    try:
        yield from batches
    except Exception as failure:
        failures.append(failure)
        raise


def _write(reader: pa.RecordBatchReader, gpkg: str, geometry: Mapping[str, str | None]) -> None:
    write_arrow(
        reader,
        gpkg,
        layer=LAYER,
        driver="GPKG",
        geometry_type="Unknown" if geometry else None,
        dataset_options={"VERSION": "1.2"},
        layer_options={"SPATIAL_INDEX": "NO", "FID": FID, **({"GEOMETRY_NAME": GEOMETRY} if geometry else {})},
        **geometry,
    )


def _crs_text(column: Mapping[str, Any]) -> str | None:
    """The system of a geometry column in a form that GDAL reads, None if it is unknown."""
    crs = column.get("crs", CRS84)
    if isinstance(crs, str) and CRS_TEXT.match(crs):
        return CODES_OF_TEXTS.get(crs, crs)
    if not isinstance(crs, dict):
        return None
    code = identifier(crs)
    if code in WGS84_CODES:
        return "EPSG:4326"
    return f"EPSG:{code[1]}" if code[0] == "EPSG" else json.dumps(crs)


def _geometry(values: pa.Array, encoding: str) -> pa.Array:
    if encoding == "wkb":
        return storage(values).cast(pa.binary())
    return pa.array([to_wkb(value, encoding) for value in storage(values).to_pylist()], pa.binary())


def _finite(values: pa.Array) -> pa.Array:
    """`values` without infinite numbers, of whose text only newer drivers make numbers again."""
    if not types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_inf(values), pa.scalar(None, values.type), values)
