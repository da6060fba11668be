"""Columns of coordinates by their names, in the languages of most users."""

import pytest

from service.engine.jailed.place_names import find_pairs
from service.engine.jailed.places import unique_names


def pairs(header: str) -> list[tuple[str, str]]:
    names = header.split("|")
    return [(names[x], names[y]) for x, y in find_pairs(list(enumerate(names)))]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("stop_id|stop_lat|stop_lon", ("stop_lon", "stop_lat")),
        ("name|Latitude (deg)|Longitude (deg)", ("Longitude (deg)", "Latitude (deg)")),
        ("Breite|Laenge", ("Laenge", "Breite")),
        ("geogr. Breite|geogr. Länge", ("geogr. Länge", "geogr. Breite")),
        ("Breitengrad|Längengrad", ("Längengrad", "Breitengrad")),
        ("lat|lng", ("lng", "lat")),
        ("Easting (m)|Northing (m)", ("Easting (m)", "Northing (m)")),
        ("X_COORD|Y_COORD", ("X_COORD", "Y_COORD")),
        ("POINT_X|POINT_Y", ("POINT_X", "POINT_Y")),
        ("decimalLatitude|decimalLongitude", ("decimalLongitude", "decimalLatitude")),
        ("lat_wgs84|lon_wgs84", ("lon_wgs84", "lat_wgs84")),
        ("Latitud|Longitud", ("Longitud", "Latitud")),
        ("Szerokość geograficzna|Długość geograficzna", ("Długość geograficzna", "Szerokość geograficzna")),
        ("Широта|Долгота", ("Долгота", "Широта")),
        ("纬度|经度", ("经度", "纬度")),
        ("緯度|経度", ("経度", "緯度")),
        ("위도|경도", ("경도", "위도")),
        ("अक्षांश|देशांतर", ("देशांतर", "अक्षांश")),
        ("ละติจูด|ลองจิจูด", ("ลองจิจูด", "ละติจูด")),
        ("קו רוחב|קו אורך", ("קו אורך", "קו רוחב")),
        ("COORDENADA-X|COORDENADA-Y", ("COORDENADA-X", "COORDENADA-Y")),
        ("coordonnée_x_l93|coordonnée_y_l93", ("coordonnée_x_l93", "coordonnée_y_l93")),
        ("x_rd|y_rd", ("x_rd", "y_rd")),
        ("UTM33_X|UTM33_Y", ("UTM33_X", "UTM33_Y")),
        ("enlem|boylam", ("boylam", "enlem")),
        ("utm_e|utm_n", ("utm_e", "utm_n")),
        ("site_no|lat_va|long_va|dec_lat_va|dec_long_va|alt_va", ("dec_long_va", "dec_lat_va")),
    ],
)
def test_usual_names(header: str, found: tuple[str, str]) -> None:
    """With the words that often accompany them."""
    assert pairs(header) == [found]


@pytest.mark.parametrize(
    "header",
    [
        "platform|latest",
        "longitude_quality|latitude_quality",
        "min_lat|min_lon",
        "screen_x|screen_y",
        "lat_error|lon_error",
        "lon|name",
        "start_lon|end_lat",
        "extra|deny",
        "EOV X|EOV Y",
    ],
)
def test_names_that_only_resemble_them(header: str) -> None:
    """Words within words, words about coordinates, and halves of different pairs do not count."""
    assert pairs(header) == []


def test_the_plainest_pair_comes_first() -> None:
    """Whatever the order of the columns."""
    assert pairs("end_lat|end_lon|lat|lon") == [("lon", "lat"), ("end_lon", "end_lat")]


@pytest.mark.parametrize("header", ["NORTH|SOUTH|EAST|WEST", "n|e|s|w"])
def test_the_edges_of_an_area_are_no_point(header: str) -> None:
    """Two of them are its corner."""
    assert pairs(header) == []
    first, second, third, *_ = header.split("|")
    assert pairs(f"{first}|{third if len(first) > 1 else second}") != []


@pytest.mark.no_cover
@pytest.mark.parametrize("word", ["lat ", "a ", "aB", "a\u0300", "e\u0300\u0327" + "\u0300" * 9])
def test_a_name_of_many_words_is_no_coordinate(word: str) -> None:
    """To look at each word beside all others would take minutes, in which nothing else of the service runs."""
    names = [(number, f"{word * 2000}{number}") for number in range(1000)]
    assert find_pairs([*names, (1000, "lon"), (1001, "lat")]) == [(1000, 1001)]


def test_a_thousand_columns_with_the_same_words_are_not_all_paired() -> None:
    """Each with each would be a million pairs."""
    names = [(at, ("lon" if at % 2 else "lat").join((" " * (at // 2 % 50), "." * (at // 100)))) for at in range(2000)]
    assert find_pairs(names)[0] == (1, 0)


def test_thousands_of_columns_of_one_name_get_numbers() -> None:
    """To try the numbers of each anew would take minutes, in which nothing else of the service runs."""
    assert unique_names(["Name", *["name"] * 30_000])[-1] == "name_30001"
