"""What the client asks of a conversion, apart from the file."""

import msgspec

DEFAULT_EPSG = 4326


class ConversionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one conversion (interface 4.1, 2.6).

    `output` is the value of outputFormat, None for the default direction; `source_epsg` overrides the system that the
    file records; `layer` names the only layer to convert; `x_field`, `y_field`, `z_field` and `wkt_field` name the
    columns of a table that hold its geometry. With `keep_coordinates`, coordinates in an unknown system are kept.
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
        """The columns that hold the geometry of a table, by the form field that names them."""
        named = {"xField": self.x_field, "yField": self.y_field, "zField": self.z_field, "wktField": self.wkt_field}
        return {field: name for field, name in named.items() if name is not None}
