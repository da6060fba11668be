"""What the caller asks of a conversion, apart from the file."""

import msgspec

DEFAULT_EPSG = 4326


class ConversionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of one conversion (interface 4.1, 2.6).

    `output` is the text of outputFormat, None for the default direction; `source_epsg` overrides what the file records;
    `layer` names the one layer to convert; `x_field`, `y_field`, `z_field` or `wkt_field` name the columns of a table
    that hold its geometry. With `keep_coordinates` those of an unknown system are written as they are.
    """

    output: str | None = None
    target_epsg: int = DEFAULT_EPSG
    source_epsg: int | None = None
    layer: str | None = None
    x_field: str | None = None
    y_field: str | None = None
    z_field: str | None = None
    wkt_field: str | None = None
    keep_coordinates: bool = False

    @property
    def place_fields(self) -> dict[str, str]:
        """The columns of a table that are named as its geometry, by the form field that names them."""
        named = {
            "xField": self.x_field,
            "yField": self.y_field,
            "zField": self.z_field,
            "wktField": self.wkt_field,
        }
        return {field: name for field, name in named.items() if name is not None}
