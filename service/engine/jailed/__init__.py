"""Our programs that run in the sandbox on untrusted files: modules whose function `main` is called there (`program`).

They import little, because their start-up time matters. They read and write files with fixed names in their working
directory, return what they have found, and report errors by exit code. The rest of the code does not trust what they
write and return: a file may have compromised them.
"""

CALLER, RARE_CALLER = CALLERS = (f"{__name__}.program", f"{__name__}.rare_program")
"""What Python runs to call a program, and to call one of `RARE_PROGRAMS`; the program is the first argument."""
PARQUET_READING, PARQUET_WRITING = RARE_PROGRAMS = (f"{__name__}.parquet_reading", f"{__name__}.parquet_writing")
"""Those whose imports take more memory than all others, for a launcher that loads them when they are needed. They are
named, not imported: they need optional packages."""
