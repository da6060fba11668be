"""Which encoding Python uses for names of files and for what it passes to other programs; it depends on the locale."""

import sys


def names_files_in_utf8() -> bool:
    """Whether it is UTF-8. GDAL takes nothing else, and names of layers are names of files in several formats."""
    return sys.getfilesystemencoding() == "utf-8"
