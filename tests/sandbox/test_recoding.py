"""Texts in the code pages of Windows and DOS are converted as GDAL converts them."""

import json
import os
import random
import shutil
import subprocess
import sys

import pytest

from sandbox.forkserver import built

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
PAGES = ("CP1250", "CP1251", "CP1252", "CP1255", "CP1258", "CP850", "CP866", "CP932", "CP936", "CP437", "CP99999")
"""Of two of them, the C library keeps the last letter back until it knows the next one."""
PROGRAM = """
import ctypes, json, sys
library, texts = json.load(sys.stdin)
gdal = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
both = ctypes.CDLL(None).CPLRecode, gdal.CPLRecode
for function in both:
    function.restype = ctypes.c_char_p
assert ctypes.cast(both[0], ctypes.c_void_p).value != ctypes.cast(both[1], ctypes.c_void_p).value
gdal.CPLPushErrorHandler(gdal.CPLQuietErrorHandler)
for text, *encodings in texts:
    ours, own = [function(bytes.fromhex(text), *map(str.encode, encodings)) for function in both]
    if ours != own:
        print(text, *encodings, ours, own)
"""


def library_of_gdal() -> str:
    listed = subprocess.run(["ldd", str(shutil.which("ogr2ogr"))], capture_output=True, text=True, check=True).stdout
    return next(line.split()[2] for line in listed.splitlines() if "libgdal" in line)


def test_texts_are_converted_as_by_gdal() -> None:
    """Also those that a page cannot hold, or that end within a letter, from one page to another and back."""
    chance, texts = random.Random(1), list[tuple[str, str, str]]()
    letters = "aZ0 é€šЖяüאあ漢�\x81\n"
    for _ in range(2000):
        page = chance.choice(PAGES)
        raw = bytes(chance.choices(range(1, 256), k=chance.randint(0, 9)))
        plain = "".join(chance.choices(letters, k=chance.randint(0, 9))).encode()
        texts += [(raw.hex(), page, "UTF-8"), (plain.hex(), "UTF-8", page), (raw.hex(), "UTF-8", page)]
    texts += [(bytes([byte]).hex(), page, "UTF-8") for page in PAGES for byte in range(1, 256)]
    texts += sorted(texts, key=lambda text: text[1:])  # a conversion is used again for the next text
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([library_of_gdal(), texts]),
        env={**os.environ, "LD_PRELOAD": str(built())},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
