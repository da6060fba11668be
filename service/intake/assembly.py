"""The rules for forms, applied to the events of a form as they arrive (interface 7.1)."""

from typing import assert_never

from service.errors import MalformedRequest, RequestFault, TooManyFiles
from service.formats.detect import is_gzip
from service.intake.files import IncomingFile
from service.intake.form import Form, FormSpec, IntakeLimits
from service.intake.multipart import Event, FileEnd, FileStart, TextPart
from service.intake.size_limits import file_too_large
from service.intake.workspace import Workspace

_PIECE_OVERHEAD_BYTES = 64  # even a piece of two bytes is an object


class Assembly:
    """A form in transit: `take` runs in the event loop, `flush` may run in a thread, never both at the same time."""

    def __init__(self, spec: FormSpec, limits: IntakeLimits, workspace: Workspace, *, small: bool) -> None:
        self._small = small
        self._spec = spec
        self._limits = limits
        self._workspace = workspace
        self._fields: dict[str, list[str]] = {}
        self._unknown: dict[str, None] = {}
        self._files: list[IncomingFile] = []
        self._open: list[IncomingFile] = []
        self.pending_bytes = 0

    def take(self, event: Event) -> None:
        """Process the next event of the form.

        Raises:
            RequestFault: the form violates a rule.
        """
        match event:
            case bytes():
                self._add(event)
            case TextPart():
                self._keep(event)
            case FileStart():
                self._begin_file(event)
            case FileEnd():
                self._files[-1].ended = True
            case _:
                assert_never(event)

    def flush(self) -> None:
        """Write everything received so far to disk; blocks.

        Raises:
            Overloaded: the disk is full.
        """
        for file in self._open:
            file.write_out()
        self._open = [file for file in self._open if not file.ended]
        self.pending_bytes = 0

    def close(self) -> None:
        """Close the open files; the workspace deletes them."""
        for file in self._open:
            file.close()

    def form(self) -> Form:
        """Return the complete form, after its last event and a flush.

        Raises:
            MalformedRequest: it has no file.
        """
        if not self._files:
            name = self._spec.file_field
            raise MalformedRequest(f'The form has no part "{name}". With curl: -F {name}=@cities.geojson')
        fields = {name: tuple(values) for name, values in self._fields.items()}
        files = tuple(file.upload() for file in self._files)
        return Form(fields=fields, files=files, unknown_fields=tuple(self._unknown))

    def _keep(self, field: TextPart) -> None:
        if field.name in self._spec.fields:
            self._fields.setdefault(field.name, []).append(field.value)
        else:
            self._unknown[field.name] = None

    def _begin_file(self, start: FileStart) -> None:
        if len(self._files) >= self._max_files:
            raise self._too_many_files()
        file = IncomingFile(
            self._workspace.new_directory(small=self._small and not is_gzip(start.untrusted_name)),
            start.untrusted_name,
            max_bytes=self._limits.max_file_bytes,
            hashed=self._spec.digest,
        )
        self._files.append(file)
        self._open.append(file)

    def _add(self, data: bytes) -> None:
        file = self._files[-1]
        file.add(data)
        if not file.oversize:
            self.pending_bytes += len(data) + _PIECE_OVERHEAD_BYTES
        elif not self._spec.many:
            raise file_too_large(self._limits)

    @property
    def _max_files(self) -> int:
        return self._limits.max_batch_files if self._spec.many else 1

    def _too_many_files(self) -> RequestFault:
        if self._spec.many:
            return TooManyFiles(f"The batch has more than {self._max_files} files. Send them in several requests.")
        return MalformedRequest(
            f'The form has more than one part "{self._spec.file_field}". Use /api/geo/convert/batch for several files.'
        )
