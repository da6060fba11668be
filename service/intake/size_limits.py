"""The maximum sizes of bodies and files, and the faults above them (interface 8)."""

from service.errors import BatchTooLarge, RequestFault, UploadTooLarge
from service.intake.form import MEBIBYTE, FormSpec, IntakeLimits

FORM_OVERHEAD_BYTES = MEBIBYTE  # of a single-file form: its other parts, its headers, its boundaries


def max_body_bytes(spec: FormSpec, limits: IntakeLimits) -> int:
    """Return the maximum size of the body of a form like `spec`, in bytes."""
    return limits.max_batch_bytes if spec.many else limits.max_file_bytes + FORM_OVERHEAD_BYTES


def body_too_large(spec: FormSpec, limits: IntakeLimits) -> RequestFault:
    """Return the fault for a body above `max_body_bytes`."""
    if not spec.many:
        return file_too_large(limits)
    return BatchTooLarge(
        f"The batch is larger than {_size(limits.max_batch_bytes)}, the maximum for one request. "
        "Send its files in several requests."
    )


def file_too_large(limits: IntakeLimits) -> RequestFault:
    """Return the fault for a file above the maximum."""
    return UploadTooLarge(f"The file is larger than {_size(limits.max_file_bytes)}, the maximum for one file.")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / MEBIBYTE:g} MB ({size_bytes} bytes)"
