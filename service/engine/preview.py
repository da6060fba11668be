"""Writes a preview of a file: its first features in longitude and latitude, simplified, as GeoJSON for a map."""

from collections.abc import Iterator, Sequence

import msgspec

from service.engine.diagnostics import UNREACHABLE
from service.engine.jailed import preview as preview_program
from service.engine.jailed.gpkg import quoted
from service.engine.reading.work_file import WORK_DRIVER
from service.engine.workspace import WORK_FILE, Workplace
from service.formats.crs import WGS84
from service.formats.facts import Facts, Layer
from service.formats.geometry import Family
from service.formats.table.json_family import AS_TEXTS

MOST_FEATURES = 50_000
MOST_BYTES = 5 << 20
MOST_LAYERS = 10
PARTS_ACROSS = 4096
"""Lines are simplified to this fraction of the layer's extent, which is less than a pixel of a whole map."""
DRIVER = "GeoJSONSeq"
PARTS_FILE = "parts.json"
PREVIEW_FILE = "preview.json"
PLACES = ("-lco", "COORDINATE_PRECISION=6", "-dim", "XY", "-nlt", "CONVERT_TO_LINEAR")
JAILED = (preview_program.__name__,)


class _Share(msgspec.Struct, frozen=True):
    layer: Layer
    features: int


async def write_preview(place: Workplace, facts: Facts, epsg: int | None) -> str:
    """Write the preview of the content of the work file; return the name of the preview.

    `epsg` is the system of layers that record none; if it is None, their coordinates are left out.

    Raises:
        Rejection: the features cannot be read, or reading them exceeds the limits.
    """
    parts = []
    shares = list(_shares([layer for layer in facts.layers if layer.features and not layer.is_derived]))
    for number, share in enumerate(shares):
        file = f"lines{number}.geojsonl"
        options, selection = _reading(share.layer, epsg)
        arguments = [
            "-f",
            DRIVER,
            *AS_TEXTS,
            *options,
            "-limit",
            str(share.features),
            "-skipfailures",
            file,
            WORK_FILE,
            *selection,
        ]
        await place.ogr2ogr(arguments, (DRIVER, WORK_DRIVER), tolerated=UNREACHABLE)
        parts.append({"file": file, "layer": share.layer.name})
    about = {
        "most_features": MOST_FEATURES,
        "most_bytes": MOST_BYTES,
        "features": facts.feature_count,
        "is_simplified": any(_tolerance(share.layer) for share in shares),
        "parts": parts,
    }
    await place.write_text(PARTS_FILE, msgspec.json.encode(about).decode())
    await place.python(preview_program.__name__, PARTS_FILE, PREVIEW_FILE)
    return PREVIEW_FILE


def _shares(layers: Sequence[Layer]) -> Iterator[_Share]:
    """Divide the features of a preview among the layers; what a small layer does not need, others get."""
    shown = layers[:MOST_LAYERS]
    left, shares = MOST_FEATURES, {}
    for after, layer in enumerate(sorted(shown, key=lambda one: one.features)):
        shares[layer.table] = min(layer.features, left // (len(shown) - after))
        left -= shares[layer.table]
    return (_Share(layer, shares[layer.table]) for layer in shown)


def _reading(layer: Layer, epsg: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options that convert coordinates to longitude and latitude, and what to read from the work file."""
    if layer.is_spatial and not layer.crs.known and epsg is None:
        listed = ", ".join(quoted(field.name) for field in layer.fields) or "NULL"
        return (), ("-sql", f"SELECT {listed} FROM {quoted(layer.table)}")  # noqa: S608 -- quoted
    source = () if layer.crs.known else ("-s_srs", f"EPSG:{epsg}")
    systems = (*source, "-t_srs", f"EPSG:{WGS84}") if layer.is_spatial else ()
    return (*PLACES, *systems, *_tolerance(layer)), (layer.table,)


def _tolerance(layer: Layer) -> tuple[str, ...]:
    """The arguments that simplify lines and areas, in the units of the layer."""
    if layer.extent is None or not layer.families - {Family.POINT}:
        return ()
    west, south, east, north = layer.extent
    tolerance = max(east - west, north - south) / PARTS_ACROSS
    return ("-simplify", repr(tolerance)) if tolerance > 0 else ()
