"""What the options of `geomill convert` say of a conversion."""

import argparse
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from service.cli.command import CliArgument, argument


class RequestOption(msgspec.Struct, frozen=True):
    """An option, the member of a `ConversionRequest` that it sets, and the field of the form for a server."""

    member: str
    field: str
    argument: CliArgument


def _option(member: str, field: str, option: str, meaning: str, **options: object) -> RequestOption:
    return RequestOption(member, field, argument(option, dest=member, help=meaning, **options))


_COLUMN, _CODE = {"metavar": "COLUMN"}, {"metavar": "N", "type": int}
REQUEST_OPTIONS = (
    _option("output", "outputFormat", "--to", "target: a name, token or extension, such as gpkg", metavar="FORMAT"),
    _option("target_epsg", "targetEpsg", "--epsg", "EPSG code of the result; default: 4326", **_CODE),
    _option("source_epsg", "sourceEpsg", "--source-epsg", "EPSG code of the file's coordinates", **_CODE),
    _option("layer", "layer", "--layer", "the one layer to convert", metavar="NAME"),
    _option("x_field", "xField", "--x-field", "the column of a table with x, or longitude", **_COLUMN),
    _option("y_field", "yField", "--y-field", "the column with y, or latitude", **_COLUMN),
    _option("z_field", "zField", "--z-field", "the column with elevations", **_COLUMN),
    _option("wkt_field", "wktField", "--wkt-field", "the column with geometries", **_COLUMN),
    _option(
        "keep_coordinates",
        "keepCoordinates",
        "--keep-coordinates",
        "write coordinates of an unknown system unchanged",
        action="store_true",
    ),
)

_OPTION_OF = {
    f"the field {option.field}" if option.field.islower() else option.field: option.argument.names[0]
    for option in REQUEST_OPTIONS
}
"""The options by what sentences of the service call them; a field with the name of an ordinary word is called so."""
_NAMED = re.compile(rf"(?<![\w'\"])({'|'.join(_OPTION_OF)})(?:=true)?(?![\w'\"])")
"""Such a name, unless it is in quotes, as what files contain is."""


def members_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return those of the arguments that are members of a `ConversionRequest` and were given."""
    given = {option.member: getattr(arguments, option.member) for option in REQUEST_OPTIONS}
    return {member: value for member, value in given.items() if value is not None and value is not False}


def as_fields(members: Mapping[str, Any]) -> dict[str, str]:
    """Return members as the fields of a form."""
    return {
        option.field: "true" if members[option.member] is True else str(members[option.member])
        for option in REQUEST_OPTIONS
        if option.member in members
    }


def in_options(sentence: str) -> str:
    """Return a sentence of the service with the options of the command in place of the fields of the interface."""
    return _NAMED.sub(lambda named: _OPTION_OF[named[1]], sentence)
