"""Does what ogr2ogr does, with the GDAL in the wheel of pyogrio, which has drivers that the GDAL of some hosts lacks.

Runs in the sandbox. The messages are those of ogr2ogr, in the same place.
"""

import ctypes
import sys
from collections.abc import Mapping

from service.engine.jailed.gpkg import MAX_LAYERS

READING: Mapping[str, str] = {"LIBKML": "RegisterOGRLIBKML"}
"""The drivers that may be taken from there, each with what registers it."""
WRITING: Mapping[str, str] = {"GPKG": "RegisterOGRGeoPackage", "SQLite": "RegisterOGRSQLite"}
"""Those of work files."""
OF_VECTOR, OF_VERBOSE_ERROR = 0x04, 0x40
_HANDLE = ctypes.c_void_p
_TEXTS = ctypes.POINTER(ctypes.c_char_p)
_SIGNATURES = {
    "GDALOpenEx": (_HANDLE, (ctypes.c_char_p, ctypes.c_uint, _TEXTS, _TEXTS, _TEXTS)),
    "GDALDatasetGetLayerCount": (ctypes.c_int, (_HANDLE,)),
    "GDALVectorTranslateOptionsNew": (_HANDLE, (_TEXTS, _HANDLE)),
    "GDALVectorTranslate": (
        _HANDLE,
        (ctypes.c_char_p, _HANDLE, ctypes.c_int, ctypes.POINTER(_HANDLE), _HANDLE, ctypes.POINTER(ctypes.c_int)),
    ),
    "GDALClose": (ctypes.c_int, (_HANDLE,)),
}


def main(library: str, drivers: str, *arguments: str) -> None:
    """Translate with `drivers`, separated by commas, and no others; or end with 1, as ogr2ogr does."""
    gdal = ctypes.CDLL(library)
    for name, (result, parameters) in _SIGNATURES.items():
        function = getattr(gdal, name)
        function.restype, function.argtypes = result, parameters
    for driver in drivers.split(","):
        getattr(gdal, {**READING, **WRITING}[driver])()
    *options, target, source = map(str.encode, arguments)
    opened = gdal.GDALOpenEx(source, OF_VECTOR | OF_VERBOSE_ERROR, None, None, None)
    if opened and gdal.GDALDatasetGetLayerCount(opened) > MAX_LAYERS:
        sys.exit(f"ERROR 1: more than {MAX_LAYERS} layers")  # each would become a table before they are counted
    planned = gdal.GDALVectorTranslateOptionsNew((ctypes.c_char_p * (len(options) + 1))(*options), None)
    if not opened or not planned:
        sys.exit(1)
    written = gdal.GDALVectorTranslate(target, None, 1, ctypes.byref(_HANDLE(opened)), planned, None)
    if not written or gdal.GDALClose(written):
        sys.exit(1)
