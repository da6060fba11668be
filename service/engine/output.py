"""The checked and packed result of a conversion."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from service.engine.arguments import dataset_name, result_name
from service.engine.diagnostics import EngineDefect
from service.engine.files import NO_RESULT, size_of_written, written_files
from service.engine.jailed.parallels import HEAD_BYTES, swapped_in_america
from service.engine.kmz import with_schemas
from service.engine.pack import CHUNK, Entry, write_zip
from service.engine.workspace import OUT
from service.errors import Rejection
from service.formats.datasets import Dataset
from service.formats.format import Packaging
from service.formats.plan import ConversionPlan
from service.formats.verify import expected_in

PACKED = "packed"


def _with_swapped_parallels(descriptor: int, _: int) -> Iterator[bytes]:
    yield swapped_in_america(os.read(descriptor, HEAD_BYTES))
    while piece := os.read(descriptor, CHUNK):
        yield piece


EDITED = {".kml": with_schemas, ".map": _with_swapped_parallels}
"""What is packed of files with these extensions in place of their content."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The file to deliver. `output_epsg` is the system that it is actually in, None if it has no geometry."""

    file: str
    """Its path as text: creating a `Path` costs more than packing a small result."""
    size_bytes: int
    extension: str
    media_type: str
    output_epsg: int | None
    warnings: tuple[str, ...]
    is_little: bool
    """Whether it, and all that the converters left beside it, can be removed at negligible cost."""

    @property
    def path(self) -> Path:
        """Its path."""
        return Path(self.file)


def collect(place: str, plan: ConversionPlan, *, is_little: bool) -> Output:
    """Check what the converter wrote in `place`, and pack it if it is several files. Blocking.

    Raises:
        Rejection: a planned file is missing, empty, truncated or not a regular file.
        EngineDefect: the result does not record its coordinate system.
    """
    writing = plan.writing
    path, size = _packed(place, plan) if writing.delivery is not Packaging.FILE else _single(place, plan)
    if not size and any(expected_in(writing, dataset)[0] for dataset in plan.datasets):
        raise Rejection(NO_RESULT)
    return Output(
        file=path,
        size_bytes=size,
        extension=writing.extension,
        media_type=writing.media_type,
        output_epsg=plan.output_epsg,
        warnings=plan.warnings,
        is_little=is_little,
    )


def _single(place: str, plan: ConversionPlan) -> tuple[str, int]:
    path = f"{place}/{result_name(plan)}"
    return path, size_of_written(path, plan.writing.trailer)


def _packed(place: str, plan: ConversionPlan) -> tuple[str, int]:
    target = f"{place}/{PACKED}"
    return target, write_zip(target, _entries(place, plan))


def _entries(place: str, plan: ConversionPlan) -> list[Entry]:
    if plan.writing.delivery is Packaging.KMZ or plan.writing.one_file_per_layer:
        for dataset in plan.datasets:
            size_of_written(f"{place}/{dataset_name(plan, dataset)}", plan.writing.trailer)
            _require_crs(place, plan, dataset)
        return [
            Entry(file.path, file.name, plan.writing.endings.get(extension, b""), EDITED.get(extension))
            for file in written_files(f"{place}/{OUT}")
            for extension in (file.name[file.name.rfind(".") :],)
        ]
    folder = f"{place}/{result_name(plan)}"
    name = folder.rpartition("/")[2]
    return [Entry(file.path, f"{name}/{file.name}") for file in written_files(folder)]


def _require_crs(place: str, plan: ConversionPlan, dataset: Dataset) -> None:
    """Check that a dataset has its file for the coordinate system, if its format has one and the system is known.

    A converter that cannot look up the system leaves the file out and reports success.
    """
    extension = plan.writing.crs_member
    if not extension or plan.output_epsg is None or not dataset.layer.is_spatial:
        return
    written = f"{place}/{dataset_name(plan, dataset)}"
    path = written.removesuffix(plan.writing.member) + extension
    if not os.path.exists(path) or not size_of_written(path):  # noqa: PTH110 - creating a Path costs more
        raise EngineDefect(f"a {extension} for EPSG:{plan.output_epsg} was not written")
