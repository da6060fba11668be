"""The engine: the commands that convert one file, and the meaning of their outcomes.

Owns the command lines (`reading`, `writing`), their environment, our programs in the sandbox (`jailed`), the
translation of GDAL's messages (`diagnostics`), the packing of outputs (`output`, `pack`) and the detection of the
host's capabilities (`capabilities`).

It does not start converters itself but receives a `run` that does. Invariants: everything that a run wrote is
untrusted, so files are opened without following links and facts are validated when they are read; no command line
contains a name from a client; exit code 0 alone does not mean success.
"""
