"""Finds formats in the format table: by a value of outputFormat, by extension, by token."""

from collections.abc import Mapping

from service.errors import Rejection
from service.formats.format import SHARED_EXTENSION, Format
from service.formats.table import FORMATS


def _output_words(row: Format) -> tuple[str, ...]:
    """The names of an output format: its name, its token, its extensions with and without the dot."""
    writing = row.writing
    if writing is None or row.name is None:
        return ()
    found = {*row.extensions, *writing.more_extensions, writing.extension, writing.member} - {"", SHARED_EXTENSION}
    return (row.name.casefold(), row.token, *found, *(extension.removeprefix(".") for extension in found))


OUTPUT_NAMES = tuple(row.name for row in FORMATS if row.name is not None)
_BY_OUTPUT_WORD: Mapping[str, Format] = {word: row for row in reversed(FORMATS) for word in _output_words(row)}
"""Output formats by all their names; if two share an extension, the first row takes precedence."""
_BY_TOKEN: Mapping[str, Format] = {row.token: row for row in FORMATS}
_BY_EXTENSION: Mapping[str, Format] = {extension: row for row in reversed(FORMATS) for extension in row.extensions}
_DEFAULT_OUTPUTS: Mapping[str, str] = {"geojson": "shapefile"}
"""Formats whose default output is not GeoJSON (interface 1)."""

INPUT_EXTENSIONS = tuple(dict.fromkeys(extension for row in FORMATS for extension in row.extensions))


def find_output(text: str) -> Format:
    """The format that `text`, a value of outputFormat, names: by name, token or extension, in any case.

    Raises:
        Rejection: there is none; the message lists the valid names.
    """
    row = _BY_OUTPUT_WORD.get(text.strip().casefold())
    if row is None:
        raise Rejection(f"{text[:40]!r} is not an output format. Valid are: {', '.join(OUTPUT_NAMES)}.")
    return row


def default_output(source: Format) -> Format:
    """The output for an input of the format `source` when outputFormat is omitted (interface 1)."""
    return _BY_TOKEN[_DEFAULT_OUTPUTS.get(source.token, "geojson")]


def by_extension(extension: str) -> Format | None:
    """The input format of files with `extension` (".kml", any case), or None."""
    return _BY_EXTENSION.get(extension.casefold())


def by_token(token: str) -> Format:
    """The format with `token`.

    Raises:
        KeyError: there is none.
    """
    return _BY_TOKEN[token]
