"""XML in KML, GPX and GML: entities, addresses of schemas and links, endless elements."""

from tests.hostile.case import LIMIT, REFUSED, Case, constant, made, text
from tests.hostile.packing import packed

KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
PLACE = "<Placemark><name>{}</name><Point><coordinates>1,2</coordinates></Point></Placemark>"
GPX = '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">{}</gpx>'
WAYPOINT = '<wpt lat="1" lon="2"><name>{}</name></wpt>'
GML = (
    '<c:FeatureCollection xmlns:c="http://c" xmlns:gml="http://www.opengis.net/gml" '
    'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"{}>{}'
    "</c:FeatureCollection>"
)
MEMBER = (
    "<gml:featureMember><c:road><c:name>{}</c:name><c:geometry><gml:Point><gml:coordinates>1,2</gml:coordinates>"
    "</gml:Point></c:geometry></c:road></gml:featureMember>"
)
DOCUMENTS = {
    ".kml": KML.format(PLACE),
    ".gpx": GPX.format(WAYPOINT),
    ".gml": GML.format("", MEMBER),
}
"""With a place for a value."""
ENTITIES = {
    "a file": '<!DOCTYPE a [<!ENTITY x SYSTEM "file://{txt}">]>',
    "a path": '<!DOCTYPE a [<!ENTITY x SYSTEM "{txt}">]>',
    "an address": '<!DOCTYPE a [<!ENTITY x SYSTEM "{url}/a">]>',
    "parameters": '<!DOCTYPE a [<!ENTITY % d SYSTEM "{dtd}"> %d; <!ENTITY x "y">]>',
    "another document type": '<!DOCTYPE a SYSTEM "{url}/a.dtd" [<!ENTITY x "y">]>',
}
LAUGHS = (
    "<!DOCTYPE a [<!ENTITY l0 'ha'>"
    + "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 12))
    + "<!ENTITY x '&l11;'>]>"
)
QUADRATIC = f"<!DOCTYPE a [<!ENTITY x '{'y' * 60_000}'>]>"
DEEP = 100_000
SCHEMAS = {
    "an address": ' xsi:schemaLocation="http://c {url}/wfs?request=DescribeFeatureType&amp;typename=c:road"',
    "a file": ' xsi:schemaLocation="http://c file://{csv}"',
    "a path": ' xsi:schemaLocation="http://c {csv}"',
    "no name space": ' xsi:noNamespaceSchemaLocation="{url}/a.xsd"',
}
LINKED = (
    '<gml:featureMember xlink:href="{}"/>'
    '<gml:featureMember><c:road><c:geometry xlink:href="{}"/></c:road></gml:featureMember>'
)
NETWORK_LINK = (
    "<NetworkLink><Link><href>{url}/a.kml</href><refreshMode>onInterval</refreshMode></Link></NetworkLink>"
    "<NetworkLink><Link><href>{txt}</href></Link></NetworkLink>"
    '<Style id="s"><IconStyle><Icon><href>{url}/icon.png</href></Icon></IconStyle></Style>'
    "<GroundOverlay><Icon><href>file://{txt}</href></Icon></GroundOverlay>"
    "<Placemark><styleUrl>{url}/style.kml#s</styleUrl><Point><coordinates>1,2</coordinates></Point></Placemark>"
)


def _xml(document: str, before: str = "") -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>{before}{document}'


def _from_wfs(document: str) -> str:
    """`document` as a WFS server sends it, with the address of another request as its schema."""
    return document.replace(
        "c:FeatureCollection", 'wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs"', 1
    ).replace("</c:FeatureCollection", "</wfs:FeatureCollection")


def _nested(outer: str, inner: str, ending: str, count: int = DEEP) -> str:
    return outer * count + inner + ending * count


def _many_attributes() -> bytes:
    return _xml(KML.format(f"<Placemark {' '.join(f'a{n}=' + chr(34) * 2 for n in range(200_000))}/>")).encode()


CASES = {
    **{
        f"entity of {name} in {ext}": Case(f"a{ext}", text(_xml(document.format("&x;"), entity)))
        for name, entity in ENTITIES.items()
        for ext, document in DOCUMENTS.items()
    },
    **{
        f"billion laughs in {ext}": Case(f"a{ext}", constant(_xml(document.format("&x;"), LAUGHS)), REFUSED)
        for ext, document in DOCUMENTS.items()
    },
    **{
        f"quadratic laughs in {ext}": Case(
            f"a{ext}", constant(_xml(document.format("&x;" * 60_000), QUADRATIC)), REFUSED
        )
        for ext, document in DOCUMENTS.items()
    },
    **{
        f"GML whose schema is {name}": Case("a.gml", text(_xml(_from_wfs(GML.format(schema, MEMBER.format("x"))))))
        for name, schema in SCHEMAS.items()
    },
    "GML with links to an address": Case(
        "a.gml", text(_xml(GML.format("", LINKED.format("{url}/a.gml#b", "{url}/c"))))
    ),
    "GML with links to a file": Case("a.gml", text(_xml(GML.format("", LINKED.format("file://{csv}#b", "{csv}"))))),
    "GML in the system of an address": Case(
        "a.gml",
        text(_xml(GML.format("", MEMBER.format("x").replace("<gml:Point>", '<gml:Point srsName="{url}/crs">')))),
    ),
    "GML in the system of a file": Case(
        "a.gml", text(_xml(GML.format("", MEMBER.format("x").replace("<gml:Point>", '<gml:Point srsName="{txt}">'))))
    ),
    "GML of 12,000 types": Case(
        "a.gml",
        constant(
            _xml(GML.format("", "".join(MEMBER.format(n).replace("c:road", f"c:road{n}") for n in range(12_000))))
        ),
        LIMIT,
    ),
    "GML of elements in elements": Case(
        "a.gml", constant(_xml(GML.format("", MEMBER.format(_nested("<c:a>", "x", "</c:a>"))))), REFUSED
    ),
    "GML of texts beside elements": Case(
        "a.gml", constant(_xml(GML.format("", MEMBER.format("a > b<c:a/><![CDATA[<b>]]>c<!-- > -->" * 100_000))))
    ),
    "GML of geometries in geometries": Case(
        "a.gml",
        constant(
            _xml(
                GML.format(
                    "",
                    MEMBER.format("x")
                    .replace(
                        "<gml:Point>",
                        _nested("<gml:MultiGeometry><gml:geometryMember>", "", "", 5000) + "<gml:Point>",
                    )
                    .replace(
                        "</gml:Point>",
                        "</gml:Point>" + _nested("</gml:geometryMember></gml:MultiGeometry>", "", "", 5000),
                    ),
                )
            )
        ),
    ),
    "KML with links of every kind": Case("a.kml", text(_xml(KML.format(NETWORK_LINK))), ""),
    "KML with links of every kind, to KMZ": Case(
        "a.kml", text(_xml(KML.format(NETWORK_LINK))), "", {"outputFormat": "Kmz"}
    ),
    "KML that is only links": Case("a.kml", text(_xml(KML.format(NETWORK_LINK.partition("<Placemark>")[0])))),
    "KMZ with links of every kind": Case(
        "a.kmz", lambda bait: packed({"doc.kml": text(_xml(KML.format(NETWORK_LINK)))(bait)}), ""
    ),
    "KML of 12,000 folders": Case(
        "a.kml",
        constant(
            _xml(KML.format("".join(f"<Folder><name>f{n}</name>{PLACE.format(n)}</Folder>" for n in range(12_000))))
        ),
        LIMIT,
        {"outputFormat": "Shapefile"},
    ),
    "KML of folders in folders": Case(
        "a.kml", constant(_xml(KML.format(_nested("<Folder>", PLACE.format("x"), "</Folder>")))), REFUSED
    ),
    "KML of geometries in geometries": Case(
        "a.kml",
        constant(
            _xml(
                KML.format(
                    "<Placemark>"
                    + _nested(
                        "<MultiGeometry>", "<Point><coordinates>1,2</coordinates></Point>", "</MultiGeometry>", 20_000
                    )
                    + "</Placemark>"
                )
            )
        ),
    ),
    "KML with a folder called as another file": Case(
        "a.kml",
        text(_xml(KML.format(f"<Folder><name>../../../{{slip}}</name>{PLACE.format('x')}</Folder>"))),
        "",
        {"outputFormat": "Csv"},
    ),
    "KML with folders called as other files": Case(
        "a.kml",
        text(
            _xml(
                KML.format(
                    "".join(
                        f"<Folder><name>{name}</name>{PLACE.format('x')}</Folder>"
                        for name in ("../../{slip}", "{directory}/{slip}", "..", "CON", "a/b\\c")
                    )
                )
            )
        ),
        "",
        {"outputFormat": "Shapefile"},
    ),
    "KML with 200,000 attributes": Case("a.kml", made(_many_attributes)),
    "KML with 3,000 columns": Case(
        "a.kml",
        constant(
            _xml(
                KML.format(
                    '<Schema name="s" id="s">'
                    + "".join(f'<SimpleField type="string" name="c{n}"/>' for n in range(3000))
                    + "</Schema>"
                    + PLACE.format("x")
                )
            )
        ),
    ),
    "KML in UTF-7": Case(
        "a.kml", constant('<?xml version="1.0" encoding="UTF-7"?>' + KML.format(PLACE.format("+AGE-")))
    ),
    "GPX of points beyond the earth": Case(
        "a.gpx", constant(_xml(GPX.format('<wpt lat="1e300" lon="-1e300"/><wpt lat="nan" lon="inf"/>')))
    ),
    "GPX of extensions in extensions": Case(
        "a.gpx",
        constant(
            _xml(GPX.format(f'<wpt lat="1" lon="2"><extensions>{_nested("<a>", "x", "</a>")}</extensions></wpt>'))
        ),
    ),
}
