"""The document of a KMZ holds each layer as a document with its schema."""

import os
import re
from pathlib import Path

import pytest

from service.engine import kmz

HEAD = b'<?xml version="1.0"?>\n<kml>\n<Document id="root_doc">'
FOLDER = b"\n<Folder><name>%b</name>%b\n</Folder>"
SCHEMA = b'\n<Schema name="%b" id="%b">\n\t<SimpleField name="n" type="int"></SimpleField>\n</Schema>'
DOCUMENT = b"\n<Document><name>%b</name>%b%b\n</Document>"
END = b"\n</Document></kml>\n"


def edited(path: Path, content: bytes) -> bytes:
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return b"".join(kmz.with_schemas(descriptor, len(content)))
    finally:
        os.close(descriptor)


def places(count: int) -> bytes:
    return b"".join(b"\n  <Placemark><name>&lt;Folder&gt; %d</name>\n</Placemark>" % number for number in range(count))


@pytest.mark.parametrize("chunk", [1 << 20, 2000])
@pytest.mark.parametrize("counts", [(1,), (0,), (90, 0, 170, 1)])
def test_layers_become_documents_with_their_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...], chunk: int
) -> None:
    """Wherever the pieces end in which a large one is read."""
    monkeypatch.setattr(kmz, "CHUNK", chunk)
    names = [b"layer_%d" % number for number in range(len(counts))]
    schemas = [SCHEMA % (name, name) for name in names]
    content = [places(count) for count in counts]
    folders = [FOLDER % each for each in zip(names, content, strict=True)]
    documents = [DOCUMENT % each for each in zip(names, schemas, content, strict=True)]
    written = HEAD + schemas[0] + b"".join(folders) + b"".join(schemas[1:]) + END
    assert edited(tmp_path / "a", written) == HEAD + b"".join(documents) + END


def test_a_long_line_is_kept(tmp_path: Path) -> None:
    """Such as the coordinates of a large area; layers without columns have no schema."""
    line = b"\n<coordinates>%b</coordinates>" % (b"1,2 " * kmz.CHUNK)
    written = HEAD + FOLDER % (b"a", line) + FOLDER % (b"b", b"") + END
    assert edited(tmp_path / "a", written) == re.sub(rb"(?<=\n)(</?)Folder", rb"\1Document", written)


@pytest.mark.parametrize(
    "written", [b"", HEAD + END, HEAD + b"\n</Folder>\n<Folder><name>a</name>", HEAD + b"\n<Folder><name>a</name>"]
)
def test_what_no_driver_writes_stays_as_it_is(tmp_path: Path, written: bytes) -> None:
    """A converter may have been taken over by its file."""
    assert edited(tmp_path / "a", written) == written


@pytest.mark.parametrize("crafted", [b'\n<Schema name="a">', b'\n<Schema name="', b"\n<Folder><name>", b"\n</Folder"])
def test_text_made_to_take_long_is_passed_once(tmp_path: Path, crafted: bytes) -> None:
    """A search that began anew at every tag would stop the service."""
    written = crafted * (kmz.CHUNK // len(crafted) - 9) + b"\n<Folder><name>a</name>\n</Folder>" + END
    assert len(edited(tmp_path / "a", written)) >= len(written)


def test_a_schema_is_copied_to_one_layer(tmp_path: Path) -> None:
    """A converter that was taken over could name thousands of layers after a schema of a megabyte."""
    schema, folders = SCHEMA % (b"a", b"x" * 1000), FOLDER % (b"a", b"") * 1000
    documents = DOCUMENT % (b"a", schema, b"") + DOCUMENT % (b"a", b"", b"") * 999
    assert edited(tmp_path / "a", HEAD + schema + folders + END) == HEAD + documents + END
