"""What the caller asks of a conversion, apart from the file."""

import msgspec

DEFAULT_EPSG = 4326


class ConversionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of one conversion (spec 4.1, contract 2).

    `output` is the text of outputFormat, None for the default direction; `source_epsg` overrides what the file records;
    `layer` names the one layer to convert.
    """

    output: str | None = None
    target_epsg: int = DEFAULT_EPSG
    source_epsg: int | None = None
    layer: str | None = None
