"""What a host offers, and what a converter gets of it."""

import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path

import msgspec
import pytest

from sandbox.launchers.environment import StartEnvironment
from service.engine.capabilities import Capabilities, ConverterMissing, probe, spare_drivers
from service.engine.environment import (
    VIRTUAL_DRIVER,
    converter_environment,
    prepared_environment,
    python_environment,
    wheel_environment,
)
from service.formats.offer import Offer
from service.formats.table import FORMATS

LISTING = """Supported Formats:
  ESRI Shapefile -vector- (rw+v): ESRI Shapefile
  GeoJSON -vector- (rw+v): GeoJSON
  GPKG -raster,vector- (rw+vs): GeoPackage
  OpenFileGDB -vector- (rov): ESRI FileGDB
  UK .NTF -vector- (rov): UK .NTF
  BAG -raster,multidimensional raster,vector- (rw+v): Bathymetry Attributed Grid
  OGR_VRT -vector- (rov): VRT - Virtual Datasource
"""


@pytest.fixture
def host(tmp_path: Path) -> Capabilities:
    """A host whose ogr2ogr is a program that responds as an old one does."""
    program = tmp_path / "bin" / "ogr2ogr"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "GDAL 3.4.1, released" || cat <<"END"\n{LISTING}END\n')
    program.chmod(0o755)
    share = tmp_path / "share" / "proj"
    share.mkdir(parents=True)
    with closing(sqlite3.connect(share / "proj.db")) as connection:
        connection.execute("CREATE TABLE crs (code)")
    return probe(program, tmp_path / "data", {})


def test_drivers_are_listed_with_their_abilities(host: Capabilities) -> None:
    """Including names with blanks and dots."""
    assert host.version == "3.4.1"
    assert host.drivers["UK .NTF"] == "rov"
    assert host.drivers["BAG"] == "rw+v"
    assert host.can_write("GPKG")
    assert not host.can_write("OpenFileGDB")


def test_the_host_installed_beside_the_program_gives_the_data(host: Capabilities, tmp_path: Path) -> None:
    """The copy of PROJ's database beside the program takes precedence."""
    assert host.proj_database.is_relative_to(tmp_path / "data")
    assert host.proj_directories[-1] == str(tmp_path / "share" / "proj")


def test_what_is_missing_is_named(host: Capabilities) -> None:
    """A read-only driver, a missing driver, packages that could replace one."""
    without = msgspec.structs.replace(host, has_arrow=False, spare={})
    unwritable = Offer(without.formats).unwritable()
    assert "cannot write with its OpenFileGDB driver" in unwritable["openfilegdb"]
    assert "no FlatGeobuf driver" in unwritable["flatgeobuf"]
    assert "pyarrow and pyogrio are missing" in unwritable["geoparquet"]
    assert "geoparquet" not in Offer(msgspec.structs.replace(host, has_arrow=True).formats).unwritable()
    assert {entry.format.token: entry.input for entry in without.formats}["kml"] is False


def test_a_driver_is_named_that_would_read_a_format_that_can_be_written(host: Capabilities) -> None:
    """KML is read by another driver than the one that writes it."""
    writing = msgspec.structs.replace(host, drivers={**host.drivers, "KML": "rw+v"}, spare={})
    (kml,) = (entry for entry in writing.formats if entry.format.title == "KML")
    assert (kml.input, kml.output) == (False, True)
    assert kml.reason == (
        "GDAL 3.4.1 has no LIBKML driver, and there is no wheel of pyogrio with one. Install it (pip install pyogrio)."
    )


def test_a_driver_of_a_second_gdal_reads_what_the_first_one_cannot(host: Capabilities) -> None:
    """A run that needs it is told its library; if GDAL has the driver, no other is looked for."""
    (kml,) = (entry for entry in host.formats if entry.format.title == "KML")
    assert kml.input
    library = host.spare_for(("LIBKML", "GPKG"))
    assert Path(library).is_file()
    assert host.spare_for(("GPKG",)) == ""
    assert spare_drivers([]) == {}
    environment = wheel_environment(host, library, {"LIBKML_LAUNDER_FIELD_NAMES": "NO"})
    assert environment["LIBKML_LAUNDER_FIELD_NAMES"] == "NO"
    assert environment["PROJ_NETWORK"] == "OFF"
    assert environment["PYTHONSAFEPATH"] == "1"
    assert Path(environment["PROJ_DATA"], "proj.db").is_file()
    assert Path(environment["GDAL_DATA"]).is_dir()


@pytest.mark.parametrize("content", [None, "#!/bin/sh\nexit 3\n", "#!/bin/sh\necho GDAL 3.4.1\n"])
def test_a_host_without_a_converter_is_told_what_to_install(tmp_path: Path, content: str | None) -> None:
    """It is missing, does not run, or is another program."""
    program = tmp_path / "ogr2ogr"
    if content is not None:
        program.write_text(content)
        program.chmod(0o755)
    with pytest.raises(ConverterMissing, match="apt-get install gdal-bin"):
        probe(program, tmp_path, {})


def test_a_run_knows_only_its_drivers(host: Capabilities) -> None:
    """All others are disabled, and so is the network."""
    environment = converter_environment(host, ("GeoJSON", "GPKG"))
    skipped = environment["GDAL_SKIP"].split(",")
    assert set(skipped) == set(host.drivers) - {"GeoJSON", "GPKG"}
    assert environment["PROJ_NETWORK"] == "OFF"
    assert environment["SPATIALITE_LOAD"] == "NO"
    assert environment["http_proxy"].endswith("127.0.0.1:1")


def test_programs_of_ours_import_nothing_from_where_they_run(host: Capabilities) -> None:
    """The working directory belongs to the untrusted file."""
    environment = python_environment(host)
    assert environment["PYTHONSAFEPATH"] == "1"
    assert Path(environment["PYTHONPATH"], "service", "__init__.py").is_file()


def test_a_program_held_ready_can_take_every_run(host: Capabilities) -> None:
    """It skips the drivers that no format needs, and no others."""
    ours = [reading.drivers for row in FORMATS if (reading := row.reading)]
    ours += [(writing.driver,) for row in FORMATS if (writing := row.writing)]
    drivers = dict.fromkeys((*chain(*ours), VIRTUAL_DRIVER, "WFS"), "rw+v")
    full = msgspec.structs.replace(host, drivers=drivers)
    prepared = prepared_environment(full)
    assert prepared["GDAL_SKIP"] == "WFS"
    for row in FORMATS:
        extra = row.reading.environment if row.reading else {}
        for names in ours:
            assert StartEnvironment(prepared).can_become(converter_environment(full, (*names, VIRTUAL_DRIVER), extra))
    assert not StartEnvironment(prepared).can_become(converter_environment(full, ("GPKG", "WFS")))
