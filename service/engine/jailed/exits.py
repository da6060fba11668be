"""How the programs in the jail say what is wrong: by exit code, since only integers leave the jail unexamined."""

from enum import IntEnum


class Exit(IntEnum):
    """Why a program of ours in the jail gave up."""

    TOO_MANY_LAYERS = 40
    TOO_MANY_COLUMNS = 41
    UNKNOWN_GEOMETRY = 42
    NOT_A_TABLE = 43
    NO_GEOMETRY_COLUMN = 44
    DAMAGED = 45
    STOPPED_EARLY = 46
    NOT_UTF8 = 47
    SEVERAL_SYSTEMS = 48
