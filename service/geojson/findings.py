"""The findings of a scan: a bounded record that leaves the sandbox and is validated when it is read."""

import os
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from service.formats.facts import (
    MOMENTS,
    Count,
    Crs,
    Facts,
    Field,
    FieldType,
    Flaws,
    GeometryName,
    Layer,
)
from service.geojson.refusals import MAX_FIELDS, MAX_NAME_CHARACTERS, Reason, Unreadable

MAX_FINDINGS_BYTES = 16 << 20
MAX_FINDINGS_OBJECTS = 1 << 17
MAX_FINDINGS_COMMAS = 1 << 18
"""As many are decoded in a moment, and in tens of megabytes: a list is bounded only once all of it is decoded."""
MAX_FOREIGN = 100
WGS84 = 4326

Name = Annotated[str, Meta(max_length=MAX_NAME_CHARACTERS)]
PerType = Annotated[Mapping[GeometryName, Count], Meta(max_length=7)]


class FieldFindings(Field, frozen=True, kw_only=True, omit_defaults=True):
    """One property as a column; `longest_bytes` is also that of the texts of dates and times."""

    cut_at_nul: Count = 0
    clamped_integers: Count = 0
    rounded_integers: Count = 0
    """Values that releases of GDAL round which read negative whole numbers of 19 digits as reals."""
    integers_as_reals: Count = 0
    """Whole numbers of 64 bits that lost digits because other values are decimals."""
    reals_as_texts: Count = 0
    """Numbers that became texts because other values are texts, lists or objects."""
    others_as_texts: Count = 0
    """Whole numbers, true and false of which the same is true."""
    booleans_as_numbers: Count = 0
    mixes_lists: bool = False
    """Whether it has lists of values of different types, or lists beside other values."""
    reworded_moments: Count = 0
    """Texts of which a column of dates or times keeps only the beginning."""
    rounded_moments: Count = 0
    """Times with more than millisecond precision."""
    rounded_up: Count = 0
    """Those that become the next minute, which the converter would write as its sixtieth second."""
    kept_texts: Count = 0
    """Texts that a column of dates or times would not have kept completely."""

    @property
    def times(self) -> int:
        """How many values are times, of a day or not."""
        return self.filled or 0 if self.type in {FieldType.DATETIME, FieldType.TIME} else 0

    def as_field(self) -> Field:
        """The column as a work file would show it, as far as the scan counts what is in one."""
        return self if self.type is FieldType.TEXT else msgspec.structs.replace(self, longest_bytes=0, over_dbf_limit=0)

    def as_text(self) -> "FieldFindings":
        """The same column with all texts kept as texts, including dates and times."""
        if self.type not in MOMENTS:
            return self
        kept = {"kept_texts": self.reworded_moments, "reworded_moments": 0, "rounded_moments": 0, "rounded_up": 0}
        return msgspec.structs.replace(self, type=FieldType.TEXT, **kept)


class Scan(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The findings of one pass over a GeoJSON document."""

    kind: Annotated[str, Meta(max_length=20)]
    layer_name: Name | None = None
    features: Count = 0
    not_features: Count = 0
    """Elements of `features` that are not Features: the converter drops their properties, or all of them."""
    repeated_members: Count = 0
    """Features with several members geometry, properties, id or type; only one of each is read."""
    foreign_members: Annotated[tuple[Name, ...], Meta(max_length=MAX_FOREIGN)] = ()
    """The names of members that are not part of GeoJSON."""
    half_letters: Count = 0
    """Escapes of unpaired surrogates, which are read as U+FFFD."""
    fields: Annotated[tuple[FieldFindings, ...], Meta(max_length=MAX_FIELDS)] = ()
    """The properties, in order of first appearance."""
    dropped_ids: Count = 0
    """Features whose `id` outside the properties does not become a column."""
    geometry_types: PerType = {}
    types_with_z: PerType = {}
    parts: PerType = {}
    """Geometries inside collections."""
    first: PerType = {}
    """The number of the first feature of each type, from 1."""
    null_geometries: Count = 0
    empty_geometries: Count = 0
    flaws: Flaws = {}
    exceeds_degrees: bool = False
    """Whether coordinates are too large to be degrees: a longitude from 1000 on, a latitude from 100 on."""
    near_edges: bool = False
    """Whether longitudes from 180 degrees on or latitudes from 85 on may occur, where maps of the world end, if the
    scan was told to seek them."""
    may_be_faulty: bool = False
    """Whether lines or rings of areas may have a single position, or rings a last one other than the first; those of
    collections may."""
    has_many_rings: bool = False
    """Whether geometries have several rings of areas; collections may."""
    may_be_infinite: bool = False
    """Whether coordinates may be infinite or not numbers, such as NaN and 1e999."""
    crs_epsg: Annotated[int, Meta(ge=1, le=1 << 31)] | None = WGS84
    """The coordinate system; None if only the converter can determine it."""
    crs_name: Name = ""
    """The text that names it; "" if none does."""

    @property
    def has_rounded_up(self) -> bool:
        """Whether times become the next minute."""
        return any(map(attrgetter("rounded_up"), self.fields))

    @property
    def is_collection(self) -> bool:
        """Whether the document is a FeatureCollection."""
        return self.kind == "FeatureCollection"

    @property
    def is_beyond_64_bits(self) -> bool:
        """Whether properties are numbers of which drivers make different ones, or which they refuse."""
        return any(map(attrgetter("clamped_integers"), self.fields)) or any(map(attrgetter("infinite"), self.fields))

    @property
    def dates_are_texts(self) -> bool:
        """Whether the converter must keep dates as texts, because a column of dates would lose content."""
        return any(map(attrgetter("kept_texts"), self.fields))

    @property
    def lists_are_texts(self) -> bool:
        """Whether the converter must read lists as texts of JSON, because lists of one type would change values."""
        return any(map(attrgetter("mixes_lists"), self.fields))

    def keeping_texts(self) -> "Scan":
        """The same findings with dates kept as texts, if a column of dates would lose content."""
        if not any(map(attrgetter("reworded_moments"), self.fields)):
            return self
        return msgspec.structs.replace(self, fields=tuple(map(FieldFindings.as_text, self.fields)))

    def facts(self, name: str) -> Facts:
        """The findings as facts about a dataset with one layer, `name`."""
        with_z = sum(self.types_with_z.values())
        layer = Layer(
            name=name,
            features=self.features,
            geometry_types=self.geometry_types,
            null_geometries=self.features - sum(self.geometry_types.values()),
            has_z=with_z > 0,
            flat_geometries=sum(self.geometry_types.values()) - with_z if with_z else 0,
            crs=Crs(known=self.crs_epsg is not None, epsg=self.crs_epsg),
            fields=tuple(map(FieldFindings.as_field, self.fields)),
        )
        return Facts(layers=(layer,))


class ScanOutcome(msgspec.Struct, frozen=True):
    """The result of a scan: findings, or the reason why there are none."""

    scan: Scan | None = None
    refused: Reason | None = None
    line: Count = 0
    """Where in the document it is; 0 if that is not known."""


_OUTCOME = msgspec.json.Decoder(ScanOutcome)


def write_outcome(path: Path, outcome: ScanOutcome) -> None:
    """Write an outcome for `read_scan`."""
    path.write_bytes(msgspec.json.encode(outcome))


def _without_waiting(path: str, flags: int) -> int:
    """Open what may be a pipe, to which nobody writes."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_scan(path: Path) -> Scan:
    """Read the findings that a scan in the sandbox wrote to `path`.

    Raises:
        Unreadable: the document is not GeoJSON, or the file at `path` is not a valid outcome.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            untrusted = file.read(MAX_FINDINGS_BYTES + 1) or b""
        is_little = (
            len(untrusted) <= MAX_FINDINGS_BYTES
            and untrusted.count(b"{") <= MAX_FINDINGS_OBJECTS
            and untrusted.count(b",") <= MAX_FINDINGS_COMMAS
        )
        outcome = _OUTCOME.decode(untrusted) if is_little else ScanOutcome()
    except (OSError, ValueError, RecursionError):
        outcome = ScanOutcome()
    if outcome.scan is None:
        raise Unreadable(outcome.refused or Reason.NO_SCAN, outcome.line)
    return outcome.scan
