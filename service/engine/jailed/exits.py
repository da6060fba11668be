"""Exit codes with which programs in the sandbox report errors; only integers leave it unvalidated."""

from enum import IntEnum


class Exit(IntEnum):
    """Why one of our programs in the sandbox gave up."""

    TOO_MANY_LAYERS = 40
    TOO_MANY_COLUMNS = 41
    UNKNOWN_GEOMETRY = 42
    NOT_A_TABLE = 43
    NO_GEOMETRY_COLUMN = 44
    DAMAGED = 45
    STOPPED_EARLY = 46
    NOT_UTF8 = 47
    SEVERAL_SYSTEMS = 48
    AMBIGUOUS_COMMAS = 49
    AMBIGUOUS_POINTS = 50
    TOO_REPETITIVE = 51
    REPEATED_ROWS = 52
    OPEN_HEADER = 53
    NO_LAYERS = 54
    ENCRYPTED = 55
