"""The CPU of one conversion of every usual pair of formats, relative to bare ogr2ogr.

    python -m bench.parts.pairs [PAIR …] [--of CONTENT] [--points 20] [--rounds 3] [--conversions 20]
                                [--setting NAME=VALUE]

A pair is a file and a target, as `shp:GeoJson`; `all:GeoJson`, `shp:all` and `all:all` are many. Each round converts
each pair with the service, then with bare ogr2ogr, for which a ZIP is unpacked. `service` is the CPU of all processes
of the server, `runs` that of what starts, isolates and runs the converter, both relative to bare ogr2ogr and as medians
of the rounds; the number of runs is the server's own count. The figures go to bench/results/pairs.json.
"""

import argparse
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import httpx
import msgspec

from bench.load.paths import SINGLE
from bench.load.site import Site, own_site
from bench.measure.meter import CONVERTERS, load_average
from bench.report.results import DIRECTORY, write_json
from service.formats.format import writing_of
from service.formats.registry import find_output

RESULTS = DIRECTORY / "pairs.json"
PAIRS = (
    "geojson:Shapefile", "shp:GeoJson", "gpkg:GeoJson", "kml:GeoJson", "csv:GeoJson", "fgb:GeoJson", "gml:GeoJson",
    "gpx:GeoJson", "xlsx:GeoJson", "geojson:GeoPackage", "geojson:Kml", "geojson:Csv", "geojson:FlatGeobuf",
    "geojson:Xlsx", "shp:GeoPackage", "gpkg:Shapefile", "kml:Shapefile", "csv:GeoPackage", "gpkg:FlatGeobuf",
    "long-names:Shapefile", "polygons:Shapefile", "shp-polygons:GeoJson", "times:GeoPackage", "gpkg-times:GeoJson",
    "tab:GeoJson", "sqlite:GeoJson", "ods:GeoJson", "dxf:GeoJson", "geojson:Gml", "geojson:Gpx", "geojson:Dxf",
    "geojson:Wkt", "geojson:Ods", "geojson:MapInfo", "geojson:SpatiaLite", "geojson:OpenFileGdb", "geojson:GeoJsonSeq",
    "geojson:Kmz",
)  # fmt: skip
NO_SYSTEM = frozenset({".csv", ".xlsx", ".ods", ".dxf"})
COPIES: Mapping[str, tuple[str, ...]] = {
    "gpkg": ("-f", "GPKG"),
    "kml": ("-f", "KML"),
    "fgb": ("-f", "FlatGeobuf"),
    "gml": ("-f", "GML"),
    "geojsonl": ("-f", "GeoJSONSeq"),
    "csv": ("-f", "CSV", "-lco", "GEOMETRY=AS_XY"),
    "gpx": ("-f", "GPX", "-dsco", "GPX_USE_EXTENSIONS=YES"),
    "sqlite": ("-f", "SQLite", "-dsco", "SPATIALITE=YES", "-dsco", "INIT_WITH_EPSG=NO"),
    "dxf": ("-f", "DXF", "-select", ""),
}
"""How bare ogr2ogr makes a file of points from GeoJSON."""
AREAS_AS_TEXT = ("-f", "CSV", "-lco", "GEOMETRY=AS_WKT")
ARCHIVES: Mapping[str, str] = {"shp": "ESRI Shapefile", "tab": "MapInfo File"}
"""The drivers of files that are sent in a ZIP with those beside them, by their extensions."""
AS_OURS: Mapping[str, tuple[str, ...]] = {
    "SpatiaLite": ("-dsco", "SPATIALITE=YES", "-dsco", "INIT_WITH_EPSG=NO"),
    "Gpx": ("-dsco", "GPX_USE_EXTENSIONS=YES"),
    "Csv": ("-lco", "GEOMETRY=AS_WKT"),
    "Wkt": ("-lco", "GEOMETRY=AS_WKT"),
}
"""Without these, bare ogr2ogr writes another format, or leaves out most columns or the geometries."""
SHEETS: Mapping[str, str] = {"xlsx": "XLSX", "ods": "ODS"}
"""The drivers of workbooks, which are made from CSV."""
ALL = "all"
NO_AREAS = frozenset({"gpx", "Gpx", "dxf"})
"""What holds no areas, or holds them as lines, so that no time can be compared."""
RUNS = re.compile(r'^geomill_converter_runs_total\{ending="\w+"\} ([0-9.e+]+)', re.MULTILINE)
CORNERS = 12
WIDE = 100
WORDS = (
    *("a", "street", "of", "the", "old", "town", "<where>", "Käse & Brot", 'is "sold"'),
    *("daily", "until", "noon,", "or"),
)


class PairFigures(msgspec.Struct, kw_only=True):
    """A pair: what it costs in each round, in seconds of CPU, and how often the converter runs for one conversion."""

    service: list[float] = []
    runs: list[float] = []
    bare: list[float] = []
    runs_per_conversion: float = 0.0

    def ratio(self, measured: Sequence[float]) -> float:
        """The median of the rounds' ratios to bare ogr2ogr."""
        return statistics.median(ours / bare for ours, bare in zip(measured, self.bare, strict=True))


def main(options: argparse.Namespace) -> None:
    """Measure, print, keep."""
    before = load_average()
    settings = dict(setting.split("=", 1) for setting in options.setting)
    with tempfile.TemporaryDirectory(prefix="geomill-pairs-") as name, own_site(settings) as site:
        files = Files(Path(name), options.points, options.of)
        found = {pair: PairFigures() for pair in every_pair(options.pairs, options.of)}
        for number in range(options.rounds + 1):
            for pair, figures in found.items():
                _measure(site, files, pair, figures, 1 if number == 0 else options.conversions)
                if number == 0:  # it warms up the server and the files' pages
                    found[pair] = PairFigures()
    for pair, figures in found.items():
        print(_line(pair, figures))
    print(_summary(list(found.values())))
    print(f"load average {before} before, {load_average()} after; figures in {RESULTS}")
    write_json(found, RESULTS)


def every_pair(asked: Iterable[str], content: str) -> list[str]:
    """The pairs that are asked for: all of one format are those with another driver that can hold such content."""
    read = {"geojson": "GeoJSON", **{name: options[1] for name, options in COPIES.items()}, **ARCHIVES, **SHEETS}
    written = {name: writing_of(find_output(name)).driver for name in (pair.partition(":")[2] for pair in PAIRS)}
    unable = NO_AREAS if content in AREAS else frozenset()
    found = []
    for pair in asked:
        source, _, target = pair.partition(":")
        sources, targets = read if source == ALL else [source], written if target == ALL else [target]
        several = itertools.product(sources, targets)
        found += [
            f"{one}:{other}" for one, other in several if not unable & {one, other} and read.get(one) != written[other]
        ]
    return found


class Files:
    """The files to convert, each made when it is first needed, of `content` unless its name says of which."""

    def __init__(self, directory: Path, points: int, content: str) -> None:
        self.directory = directory
        self._points = points
        self._content = content
        self._made: dict[str, Path] = {}

    def __getitem__(self, name: str) -> Path:
        """The file that pairs call `name`."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Path:
        if name in DOCUMENTS:
            path = self.directory / f"{name}.geojson"
            features = DOCUMENTS[self._content if name == "geojson" else name](self._points)
            path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
            return path
        kind, _, content = name.partition("-")
        if kind in ARCHIVES:
            return self._archive(kind, self[content or "geojson"], name)
        path = self.directory / f"{name}.{kind}"
        if kind in SHEETS:
            _ogr2ogr("-f", SHEETS[kind], path, self["csv"])
        else:
            as_text = (content or self._content) in AREAS and kind == "csv"
            _ogr2ogr(*AREAS_AS_TEXT if as_text else COPIES[kind], path, self[content or "geojson"])
        return path

    def _archive(self, kind: str, source: Path, name: str) -> Path:
        folder = self.directory / name
        folder.mkdir()
        _ogr2ogr("-f", ARCHIVES[kind], folder / f"in.{kind}", source)
        path = self.directory / f"{name}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in sorted(folder.iterdir()):
                archive.write(part, part.name)
        return path


def _ogr2ogr(*arguments: str | Path, check: bool = True) -> None:
    subprocess.run(["ogr2ogr", *map(str, arguments)], check=check, capture_output=True)


def _feature(number: int, geometry: Mapping[str, object], *, suffix: str = "") -> dict[str, object]:
    values = {
        "name": f"place {number}",
        "kind": f"k{number % 7}",
        "value": number * 1.5,
        "rank": number,
        "code": f"c{number:07d}",
    }
    named = {f"{name}{suffix}": value for name, value in values.items()}
    return {"type": "Feature", "properties": named, "geometry": geometry}


def _points(count: int, suffix: str = "") -> Iterator[dict[str, object]]:
    places = random.Random(1)
    for number in range(count):
        where = [round(places.uniform(-170, 170), 6), round(places.uniform(-80, 80), 6)]
        yield _feature(number, {"type": "Point", "coordinates": where}, suffix=suffix)


def _times(count: int) -> Iterator[dict[str, object]]:
    for number, feature in enumerate(_points(count)):
        minute = f"2020-01-02T{number // 60 % 24:02d}:{number % 60:02d}"
        times = {"seen": f"{minute}:05Z", "told": f"{minute}:59.5+05:45", "kept": f"{minute}:00"}
        properties = feature["properties"]
        assert isinstance(properties, dict)
        yield feature | {"properties": properties | times}


def _polygons(count: int, corners: int = CORNERS) -> Iterator[dict[str, object]]:
    places = random.Random(1)
    width = 3 / corners
    for number in range(count):
        west, south = round(places.uniform(-170, 160), 6), round(places.uniform(-80, 70), 6)
        edge = ([round(west + corner * width, 6), south + corner % 2] for corner in range(1, corners))
        ring = [[west, south], *edge, [west, 75.0]]
        yield _feature(number, {"type": "Polygon", "coordinates": [[*ring, ring[0]]]})


def _texts(count: int) -> Iterator[dict[str, object]]:
    words = random.Random(1)
    for feature in _points(count):
        properties = feature["properties"]
        assert isinstance(properties, dict)
        texts = {f"text_{number}": " ".join(words.choices(WORDS, k=20)) for number in range(5)}
        yield feature | {"properties": properties | texts}


def _wide(count: int) -> Iterator[dict[str, object]]:
    for number, feature in enumerate(_points(count)):
        columns = ((f"c{at}", f"v{number * at % 1000}" if at % 2 else number * at / 8) for at in range(WIDE))
        yield feature | {"properties": dict(columns)}


def _sparse(count: int) -> Iterator[dict[str, object]]:
    """Most values are missing, and so are half of the geometries; the others are long integers, truths and ids."""
    for number, feature in enumerate(_points(count)):
        values = {
            "long": number << 40,
            "truth": number % 2 == 0,
            "rank": number,
            "text": f"t{number}",
            "share": number / 7,
        }
        found = {name: None if (number + at) % 4 else value for at, (name, value) in enumerate(values.items())}
        yield feature | {"id": number * 3, "properties": found, "geometry": feature["geometry"] if number % 2 else None}


DOCUMENTS: Mapping[str, Callable[[int], Iterator[dict[str, object]]]] = {
    "geojson": _points,
    "long-names": partial(_points, suffix="_of_the_place"),
    "polygons": _polygons,
    "areas": partial(_polygons, corners=60),
    "texts": _texts,
    "times": _times,
    "wide": _wide,
    "sparse": _sparse,
}
"""The contents, as GeoJSON, of which the other files are made."""
AREAS = frozenset({"polygons", "areas"})
CPU_FIGURES = 4
"""How many of the numbers of `os.times` are CPU: of this process and of those that it has started."""
TICK = 1 / os.sysconf("SC_CLK_TCK")
"""The seconds in which the kernel counts CPU: what takes less may be counted as nothing."""


def _measure(site: Site, files: Files, pair: str, figures: PairFigures, conversions: int) -> None:
    """One round of one pair."""
    source, _, target = pair.partition(":")
    path = files[source]
    assert site.meter is not None
    with httpx.Client(base_url=site.address.url, headers={"X-API-Key": site.key}, timeout=600) as client:
        content, before = path.read_bytes(), _count_runs(client)
        with site.meter.measuring(settled=False) as usage:
            for _ in range(conversions):
                _convert(client, path.name, content, target)
        figures.runs_per_conversion = (_count_runs(client) - before) / conversions
    spent = usage.cpu_seconds
    figures.service.append(max(TICK, sum(spent.values())) / conversions)
    figures.runs.append(max(TICK, spent[CONVERTERS]) / conversions)
    figures.bare.append(statistics.mean(_bare(path, target) for _ in range(max(1, conversions // 4))))


def _convert(client: httpx.Client, name: str, content: bytes, target: str) -> None:
    system = {"sourceEpsg": "4326"} if Path(name).suffix in NO_SYSTEM else {}
    answer = client.post(SINGLE, files={"file": (name, content)}, data={"outputFormat": target, **system}).json()
    assert answer["success"], answer


def _count_runs(client: httpx.Client) -> float:
    return sum(map(float, RUNS.findall(client.get("/metrics").text)))


def _bare(path: Path, target: str) -> float:
    """CPU seconds of a new ogr2ogr that converts the same file, after it was unpacked."""
    writing = writing_of(find_output(target))
    places = ("-oo", "X_POSSIBLE_NAMES=X", "-oo", "Y_POSSIBLE_NAMES=Y", "-oo", "AUTODETECT_TYPE=YES")
    opens = places if path.suffix == ".csv" else ()
    system = ("-s_srs", "EPSG:4326") if path.suffix in NO_SYSTEM else ()
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        written = f"{directory}/out{writing.member or writing.extension}".replace(".zip", ".shp")
        before = os.times()
        source = _unpacked(path, Path(directory)) if path.suffix == ".zip" else path
        made = ("-f", writing.driver, *AS_OURS.get(target, ()), *opens, *system, "-t_srs", "EPSG:4326", written, source)
        _ogr2ogr(*made, check=False)  # GPX has layers that GeoJSON has not
        after = os.times()
    return sum(after[:CPU_FIGURES]) - sum(before[:CPU_FIGURES])


def _unpacked(path: Path, directory: Path) -> Path:
    """The file that a driver opens: within the ZIP, some drivers would seek through compressed bytes for minutes."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(directory)
        (name,) = (name for name in archive.namelist() if name.rpartition(".")[2] in ARCHIVES)
    return directory / name


def _line(pair: str, figures: PairFigures) -> str:
    medians = [statistics.median(each) * 1e3 for each in (figures.service, figures.runs, figures.bare)]
    return (
        f"{pair:22} service {medians[0]:7.1f} ms, x {figures.ratio(figures.service):.2f}   "
        f"runs {medians[1]:7.1f} ms, x {figures.ratio(figures.runs):.2f}   bare {medians[2]:7.1f} ms   "
        f"{figures.runs_per_conversion:g} runs"
    )


def _summary(every: Sequence[PairFigures]) -> str:
    service = [figures.ratio(figures.service) for figures in every]
    runs = [figures.ratio(figures.runs) for figures in every]
    means = statistics.geometric_mean(service), statistics.geometric_mean(runs)
    once = sum(figures.runs_per_conversion == 1 for figures in every)
    return (
        f"geometric means: service {means[0]:.2f}, worst {max(service):.2f}; runs {means[1]:.2f}, worst "
        f"{max(runs):.2f}; {once} of {len(every)} pairs in one run of the converter"
    )


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=PAIRS, metavar="PAIR")
    parser.add_argument("--of", choices=DOCUMENTS, default="geojson", help="what the files hold: points by default")
    parser.add_argument("--points", type=int, default=20, help="features in a file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--conversions", type=int, default=20, help="in each round, of each pair")
    parser.add_argument("--setting", action="append", default=[], metavar="GEOMILL_NAME=VALUE")
    return parser.parse_args()


if __name__ == "__main__":
    main(parse())
