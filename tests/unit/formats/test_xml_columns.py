"""XML with too many columns is refused before a driver reads it."""

from pathlib import Path

import pytest

from service.errors import Rejection
from service.formats.detect import detect
from service.formats.facts import MAX_COLUMNS
from service.formats.xml_columns import (
    GML_ENDS,
    GML_NAMES,
    KML_ENDS,
    KML_NAMES,
    MOST_BYTES,
    PLACE_BYTES,
    require_few_columns,
)

KINDS = {
    "data": (KML_ENDS, KML_NAMES, "<Placemark><ExtendedData>{}</ExtendedData></Placemark>", '<Data name="{}"/>'),
    "a schema": (KML_ENDS, KML_NAMES, "<Schema>{}</Schema>", "<SimpleField type='string' name='{}'/>"),
    "members": (GML_ENDS, GML_NAMES, "<gml:featureMember><a:f>{}</a:f></gml:featureMember>", "<a:c{}>1</a:c{}>"),
    "features": (GML_ENDS, GML_NAMES, '<a:f gml:id="a">{}</a:f>', "<a:c{}/>"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_too_many_columns_is_refused(tmp_path: Path, kind: str) -> None:
    """Drivers take minutes for 40,000 of them, and no target takes them."""
    ends, names, feature, column = KINDS[kind]
    path = tmp_path / "a"
    path.write_text(feature.format("".join(column.replace("{}", str(number)) for number in range(MAX_COLUMNS + 1))))
    with pytest.raises(Rejection, match="more columns than can be converted"):
        require_few_columns(path, ends, names)


@pytest.mark.parametrize("kind", KINDS)
def test_many_features_with_few_columns_each_are_left_to_the_converter(tmp_path: Path, kind: str) -> None:
    """They may be in several layers; and features repeat their columns."""
    ends, names, feature, column = KINDS[kind]
    path = tmp_path / "a"
    columns = [column.replace("{}", str(number)) for number in range(MAX_COLUMNS)]
    path.write_text("".join(map(feature.format, columns)) + 2 * feature.format("".join(columns[: MAX_COLUMNS // 2])))
    require_few_columns(path, ends, names)


NAMES = {
    "kml": '<Schema id="a"><SimpleField name="{}"/></Schema>',
    "gpx": "<extensions><a><b{}>1</b{}></a></extensions>",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("extension", NAMES)
@pytest.mark.parametrize("length", [1, 4096])
def test_names_of_columns_take_a_bounded_amount_of_memory(tmp_path: Path, extension: str, length: int) -> None:
    """All of a crafted file are different, and took the memory of everybody."""
    count = MOST_BYTES // (PLACE_BYTES + length) + 1
    names = (f"{number:0{length}}" for number in range(count))
    path = tmp_path / f"a.{extension}"
    path.write_text(f"<{extension}>" + "".join(NAMES[extension].replace("{}", name) for name in names))
    with pytest.raises(Rejection, match="more columns than can be converted"):
        detect(path, path.name, tmp_path / "unpacked")
