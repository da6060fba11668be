"""Features too far from the area for which a coordinate system is made: their coordinates in it mean nothing. Pure.

PROJ computes coordinates for most of them without an error. They stray if the way back leads elsewhere: more than 1 m,
or 100 m if the datum changes; or if they are farther from the origin of a projection than the Earth is long around, or
2,000 km and more from the central meridian of a Transverse Mercator projection, such as a zone of UTM: the way back
from there is exact, but lengths are 5 % too long.

Others are torn: lines and areas that are whole in their own system, but lie across an edge of the map in the other,
such as the date line. The converter cuts only some of them there.

Still others lose parts at a pole that is a place of their own map: the converter leaves out what it cuts with, such as
the pole, the area around it, or lines along 180 degrees.
"""

from collections.abc import Iterator
from math import isfinite
from typing import TypeAlias

import msgspec

from service.formats.crs import CrsCatalogue
from service.formats.datasets import Dataset
from service.formats.dateline import may_be_wound
from service.formats.facts import Count, Layer
from service.formats.names import shown
from service.formats.plan import ConversionPlan
from service.formats.systems import MERCATOR


class Strays(msgspec.Struct, frozen=True):
    """How many features of a layer stray, are torn or lose parts at a pole; and the first of each, from 1."""

    count: Count = 0
    first: Count = 0
    torn: Count = 0
    first_torn: Count = 0
    lost: Count = 0
    first_lost: Count = 0


SAME_METERS, SAME_METERS_OF_OTHER_DATUM = 1, 100
"""How far apart places may be to count as the same. Between two datums, PROJ may go there and back by transformations
that differ by tens of meters, also within the areas of both; without a change, the way back is exact there."""
STRETCHED = " or, 2,000 km and more from the central meridian, make lengths at least 5 % too long"
OTHER_MAPS = {
    False: "an outputFormat and a targetEpsg, such as that of the file, whose map goes on there",
    True: "the format of the file as outputFormat",
}
"""What to choose where lines span the map; by whether they are the shortest way in the file."""
ZONE = ", such as that of the zone in which they lie, or 4326"
"""What their coordinates may be instead in a Transverse Mercator projection, and what to choose instead of it."""
Astray: TypeAlias = tuple[tuple[Dataset, Strays], ...]
"""What strays or is torn, by a dataset of each layer."""


def that_may_stray(plan: ConversionPlan, catalogue: CrsCatalogue) -> list[Dataset]:
    """One dataset for each layer of which features may stray or be torn."""
    by_layer = {dataset.layer.table: dataset for dataset in plan.datasets if dataset.layer.is_spatial}
    return [dataset for dataset in by_layer.values() if _may_stray(plan, dataset.layer, catalogue)]


def _may_stray(plan: ConversionPlan, layer: Layer, catalogue: CrsCatalogue) -> bool:
    source, output = plan.source_epsg or layer.crs.epsg, plan.output_epsg
    if output is None:
        return False
    if plan.is_wound and may_be_wound(layer):
        return True
    if source == output:
        return False
    if source is None or not catalogue.is_geographic(source):
        return True
    if catalogue.is_geographic(output):
        return False
    has_edge_elsewhere = catalogue.ends_at_date_line(output) and output not in MERCATOR  # perhaps, as 8859
    return layer.extent is None or has_edge_elsewhere or not catalogue.covers(output, layer.extent)


def meters_apart(plan: ConversionPlan, layer: Layer, catalogue: CrsCatalogue) -> int:
    """How far apart the places of `layer` may be, there and back, to count as the same."""
    source, output = plan.source_epsg or layer.crs.epsg, plan.output_epsg
    is_exact = source is not None and output is not None and catalogue.share_datum(source, output)
    return SAME_METERS if is_exact else SAME_METERS_OF_OTHER_DATUM


def stray_warnings(plan: ConversionPlan, found: Astray, catalogue: CrsCatalogue) -> Iterator[str]:
    """What to tell about the features that stray or are torn."""
    in_degrees = plan.output_epsg is not None and catalogue.is_in_degrees(plan.output_epsg)
    is_transverse = plan.output_epsg is not None and isfinite(catalogue.reach(plan.output_epsg)[1])
    for dataset, strays in found:
        layer = dataset.layer
        features = sum(layer.geometry_types.values())
        if strays.torn:
            yield (
                f"{strays.torn:,} of {features:,} features of {shown(layer.name)!r}, first feature "
                f"{strays.first_torn:,}, cross {'the date line' if in_degrees else 'an edge of the map'} and were not "
                "cut there: lines between both sides of it span the whole map in the result, which is in "
                f"EPSG:{plan.output_epsg}. Cut them there, or choose {OTHER_MAPS[plan.is_wound]}."
            )
        if strays.lost:
            yield (
                f"{strays.lost:,} of {features:,} features of {shown(layer.name)!r}, first feature "
                f"{strays.first_lost:,}, reach a pole and lost parts there, such as the area around it, or lines along "
                f"the date line, in the result, which is in EPSG:{plan.output_epsg}. Choose an outputFormat and a "
                "targetEpsg, such as that of the file, whose map has the pole in its middle."
            )
        if strays.count:
            systems = (plan.source_epsg or layer.crs.epsg, plan.output_epsg)
            made = [f"EPSG:{epsg}" for epsg in systems if epsg is not None and not catalogue.is_geographic(epsg)]
            yield (
                f"{strays.count:,} of {features:,} features of {shown(layer.name)!r}, first feature {strays.first:,}, "
                f"lie too far from the area for which {' or '.join(made) or 'their system'} is made: their coordinates "
                f"in the result mean nothing{STRETCHED if is_transverse else ''}. Is the file's own system right? If "
                "not, send sourceEpsg; else leave them out, or choose another targetEpsg"
                f"{ZONE if is_transverse else ''}."
            )
