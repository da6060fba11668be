"""Puts what drivers read in full in place of the text of documents: in UTF-8, and mended."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from service.formats.bounds import Bounds, MuchToRead
from service.formats.dxf_encodings import dxf_in_utf8
from service.formats.format import Declares, Reader
from service.formats.gml_elevated import without_elevated
from service.formats.gml_radii import with_known_radii
from service.formats.gml_values import with_readable_names
from service.formats.gpx_times import with_plain_times
from service.formats.gpx_values import with_values_alone
from service.formats.kml_features import in_one_document
from service.formats.kml_repairs import mended
from service.formats.mending import Mend, Mending
from service.formats.names import shown
from service.formats.opened import removed
from service.formats.source import Part
from service.formats.text_checks import TextChecks
from service.formats.xml_encodings import in_utf8, unknown_encoding
from service.formats.xml_prefixes import with_gpx_prefixes, with_kml_prefixes

IN_UTF8: Mapping[Declares, Callable[[Path, Path, int], tuple[Path, str]]] = {
    Declares.XML: in_utf8,
    Declares.DXF: dxf_in_utf8,
}
"""What puts a file in UTF-8 in place of another, as `Mend`, by how it declares its encoding.

It is called with the file, the new one, and the size of all documents of the upload.
"""
with_known_dimensions = Mending(
    re.compile(rb"(<(?:\w{1,20}+:)?+pos(?:List)?\s(?![^<>]*srsDimension)[^<>]*?\b)dimension(?=\s*=\s*[\"']3[\"'])"),
    rb"\1srsDimension",
    within=b"dimension",
)
"""Positions of three numbers by the name of old GML, which the driver would read as more positions of two."""
without_empty_elevations = Mending(re.compile(rb"<ele\s*+(?:/>|>\s*+</ele\s*+>)"), b"", within=b"<ele", end=b"pt>")
"""The driver of GPX takes those of points in lines for 0, and so for elevations."""
MENDS: Mapping[Reader, Sequence[Mend]] = {
    Reader.KML: (with_kml_prefixes, in_one_document, mended),
    Reader.GML: (with_known_dimensions, with_known_radii, without_elevated, with_readable_names),
    Reader.GPX: (with_gpx_prefixes, with_values_alone, with_plain_times, without_empty_elevations),
}
"""By reader: what mends the documents that its driver reads, in this order."""
Replaced: TypeAlias = tuple[tuple[Part, ...], list[str]]
"""Documents, some of them in new files, and warnings about them."""


def in_known_encodings(documents: tuple[Part, ...], declares: Declares, directory: Path, bounds: Bounds) -> Replaced:
    """The documents in encodings that drivers know, without those whose encoding is not known. Blocking.

    Raises:
        MuchToRead: together they are longer than `bounds` allow.
        Rejection: no encoding is known, or they are too large to be rewritten.
    """
    known, left_out = _of_known_encodings(documents)
    all_bytes = sum(part.path.stat().st_size for part in known)
    if bounds.read_through_bytes is not None and all_bytes > bounds.read_through_bytes:
        raise MuchToRead("The text is too long to be read at once.")
    rewrite = IN_UTF8[declares]
    found, told = _replaced(known, lambda path, new: rewrite(path, new, all_bytes), directory, "utf8")
    return found, [*left_out, *told]


def mended_documents(documents: tuple[Part, ...], reader: Reader, directory: Path, text: TextChecks) -> Replaced:
    """The documents as the driver of `reader` reads them in full. Blocking.

    Raises:
        Rejection: one cannot be mended.
    """
    warnings: list[str] = []
    for number, mend in enumerate(MENDS.get(reader, ())):
        documents, told = _replaced(documents, partial(_mended, mend, text), directory, f"mended{number}")
        warnings += told
    return documents, warnings


def _mended(mend: Mend, text: TextChecks, path: Path, target: Path) -> tuple[Path, str]:
    return mend(path, target, text.shorter(path))


def _of_known_encodings(documents: tuple[Part, ...]) -> Replaced:
    """The documents without those whose encoding is not known, unless that is so of all, and a warning about those."""
    unknown = {part.layer: name for part in documents if (name := unknown_encoding(part.path))}
    if len(unknown) in {0, len(documents)}:
        return documents, []
    (first, name), *_ = unknown.items()
    told = (
        f"Documents ({len(unknown):,}, first {first!r}) were left out: they declare encodings that cannot be read, "
        f"such as {shown(name)!r}. Save them as UTF-8 and send the file again."
    )
    return tuple(part for part in documents if part.layer not in unknown), [told]


def _replaced(
    documents: Sequence[Part], replace: Callable[[Path, Path], tuple[Path, str]], directory: Path, prefix: str
) -> Replaced:
    """The documents, some of them in new files, named with `prefix`, that `replace` wrote, and its warnings."""
    found = [replace(part.path, directory / f"{prefix}_{at}{part.extension}") for at, part in enumerate(documents)]
    parts = tuple(Part({part.extension: path}, part.layer) for part, (path, _) in zip(documents, found, strict=True))
    for part, (path, _) in zip(documents, found, strict=True):
        if part.path.parent == directory and part.path != path:
            removed(part.path)
    told = [(part.layer, warning) for part, (_, warning) in zip(parts, found, strict=True) if warning]
    if len(parts) == 1 or not told:
        return parts, [warning for _, warning in told]
    (layer, first), count = told[0], len(told)
    return parts, [f"Documents ({count:,}, first {layer!r}): {first}"]
