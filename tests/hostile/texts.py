"""CSV and DXF: endless columns, brackets and blocks."""

from tests.hostile.case import LIMIT, REFUSED, Case, constant, text

INSERT = "  0\nINSERT\n  8\n0\n  2\n{}\n 10\n0\n 20\n0\n"
POINT = "  0\nPOINT\n  8\n0\n 10\n1\n 20\n2\n"
LEVELS = 10
HUGE = 2_000_000_000


def _dxf(blocks: str, entities: str) -> str:
    return (
        "  0\nSECTION\n  2\nHEADER\n  9\n$ACADVER\n  1\nAC1015\n  0\nENDSEC\n"
        f"  0\nSECTION\n  2\nBLOCKS\n{blocks}  0\nENDSEC\n"
        f"  0\nSECTION\n  2\nENTITIES\n{entities}  0\nENDSEC\n  0\nEOF\n"
    )


def _block(name: str, content: str) -> str:
    return f"  0\nBLOCK\n  8\n0\n  2\n{name}\n 10\n0\n 20\n0\n{content}  0\nENDBLK\n  8\n0\n"


def _blocks_in_blocks() -> str:
    inner = _block("b0", POINT * 10)
    outer = "".join(_block(f"b{level}", INSERT.format(f"b{level - 1}") * 10) for level in range(1, LEVELS))
    return _dxf(inner + outer, INSERT.format(f"b{LEVELS - 1}"))


def _grid(columns: int, rows: int) -> str:
    return INSERT.format("b0") + f" 70\n{columns}\n 71\n{rows}\n 44\n1\n 45\n1\n"


def _table(column: str, value: str) -> str:
    return f"name,{column}\nx,{value}\n"


CASES = {
    "DXF of blocks in blocks": Case("a.dxf", constant(_blocks_in_blocks()), LIMIT, {"sourceEpsg": "4326"}),
    "DXF of a block a billion times": Case(
        "a.dxf", constant(_dxf(_block("b0", POINT), _grid(32767, 32767))), LIMIT, {"sourceEpsg": "4326"}
    ),
    "DXF of a block in itself": Case(
        "a.dxf",
        constant(_dxf(_block("b0", INSERT.format("b0") * 10), INSERT.format("b0"))),
        None,
        {"sourceEpsg": "4326"},
    ),
    "DXF with a text that is a path": Case(
        "a.dxf", text(_dxf("", "  0\nIMAGE\n  8\n0\n  1\n{txt}\n" + POINT)), None, {"sourceEpsg": "4326"}
    ),
    "DXF with a layer called as another file": Case(
        "a.dxf",
        text(_dxf("", POINT.replace("  8\n0", "  8\n../../{slip}"))),
        "",
        {"sourceEpsg": "4326", "outputFormat": "Csv"},
    ),
    "DXF of numbers that are none": Case(
        "a.dxf",
        constant(_dxf("", POINT.replace("1\n", "1e999\n").replace("2\n", "nan\n"))),
        None,
        {"sourceEpsg": "4326"},
    ),
    "DXF of a spline that wants memory": Case(
        "a.dxf",
        constant(
            _dxf(
                "",
                f"  0\nSPLINE\n  8\n0\n 70\n0\n 71\n{HUGE}\n 72\n{HUGE}\n 73\n{HUGE}\n 40\n0\n 10\n1\n 20\n2\n",
            )
        ),
        None,
        {"sourceEpsg": "4326"},
    ),
    "DXF of a spline behind a long blank": Case(
        "a.dxf", constant(_dxf("", f"  0\nSPLINE\n 30\n{' ' * 200_000}x\n{POINT}")), None, {"sourceEpsg": "4326"}
    ),
    "DXF of a long line": Case("a.dxf", constant("  0\n" + "x" * 5_000_000)),
    "CSV of brackets": Case(
        "a.csv", constant(_table("wkt", f'"{"GEOMETRYCOLLECTION(" * 50_000}"')), None, {"sourceEpsg": "4326"}
    ),
    "CSV of brackets that close": Case(
        "a.csv",
        constant(_table("wkt", f'"{"GEOMETRYCOLLECTION(" * 5000}POINT(1 2){")" * 5000}"')),
        None,
        {"sourceEpsg": "4326"},
    ),
    "CSV of a geometry in bytes": Case(
        "a.csv",
        constant(_table("wkt", "0107000000FFFFFFFF" + "0107000000FFFFFFFF" * 9000)),
        None,
        {"sourceEpsg": "4326"},
    ),
    "CSV of a geometry in JSON": Case(
        "a.csv",
        constant(_table("geom", '"{""type"": ""Point"", ""coordinates"": [' + "[" * 50_000 + '"')),
        None,
        {"sourceEpsg": "4326"},
    ),
    "CSV of places that are none": Case(
        "a.csv", constant("lon,lat,a\nnan,inf,1\n1e999,-1e999,2\n"), None, {"sourceEpsg": "4326"}
    ),
    "CSV of a million columns": Case("a.csv", constant("a,b,c," * 333_333 + "a"), "columns"),
    "CSV of quotes": Case("a.csv", constant('"' * 3_000_001)),
    "CSV of one long cell": Case("a.csv", constant('a,b\n1,"' + "x" * 8_000_000)),
    "CSV of delimiters": Case("a.csv", constant("a,b\n" + "," * 3_000_000)),
    "CSV of nothing but lines": Case("a.csv", constant("\n" * 3_000_000), REFUSED),
    "CSV with NUL": Case("a.csv", constant("a,b\n\0\0\0,1\n")),
    "CSV in half of UTF-16": Case("a.csv", constant(b"\xff\xfea\0,\0b\0\n\0\xd8\xd8\xd8")),
    "CSV with columns called as nothing": Case(
        "a.csv", constant(",,,,\n1,2,3,4,5\n"), "", {"outputFormat": "GeoPackage"}
    ),
    "CSV with columns called as SQL": Case(
        "a.csv",
        constant('"a""; DROP TABLE x; --",__geomill_fid,__geomill_geometry,rowid,\'\n1,2,3,4,5\n'),
        "",
        {"outputFormat": "GeoPackage"},
    ),
    "CSV that names a file": Case("a.csv", text("wkt,a\n{txt},1\n@{txt},2\n/vsicurl/{url},3\n")),
}
