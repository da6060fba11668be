"""Space for what uploads of a test unpack to."""

from service.intake.unpacking_space import UnpackingSpace


def ample_space() -> UnpackingSpace:
    """Space on a disk that is never full."""
    return UnpackingSpace(lambda: 1 << 40)
