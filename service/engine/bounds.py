"""The area in which a driver stores coordinates, as integers; it stores none outside of it. Pure."""

from service.formats.datasets import Dataset
from service.formats.plan import ConversionPlan

Area = tuple[float, float, float, float]
"""West, south, east, north, in the units of the result."""
DEGREES: Area = (-180.0, -90.0, 180.0, 90.0)
PLANE: Area = (-21e6, -21e6, 21e6, 21e6)
"""As far as Mercator's projection of the world, in steps of 2 cm; some drivers' own areas are smaller and coarser."""


def bounds_of(plan: ConversionPlan, dataset: Dataset) -> Area | None:
    """The area to divide; None if the driver's own suits the coordinates best."""
    if plan.within_datelines:
        return DEGREES
    if plan.in_degrees:
        return None
    layer = dataset.layer
    return PLANE if layer.extent is None or plan.reprojects(layer) else _around(*layer.extent)


def _around(west: float, south: float, east: float, north: float) -> Area:
    """A square with some space around the coordinates, because curves may bulge, and a point has no extent.

    It ends where `PLANE` does unless coordinates are beyond that.
    """
    reach = max(east - west, north - south) or max(abs(east), abs(north)) / 1000 or 1.0
    outermost = max(abs(west), abs(south), abs(east), abs(north))
    limit = PLANE[2] if outermost <= PLANE[2] else outermost + reach
    return max(west - reach, -limit), max(south - reach, -limit), min(east + reach, limit), min(north + reach, limit)
