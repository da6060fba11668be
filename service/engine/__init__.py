"""The engine: what a converter runs for one file, and what its ending means.

Owns the command lines (`reading`, `writing`), their environment, the programs of ours in the jail (`jailed`), the
translation of GDAL's messages (`diagnostics`), the packing of outputs (`output`, `pack`) and the look at what the host
offers (`capabilities`).

It starts no converter itself: it is given a `run` that does. What always holds: everything that a run wrote is
untrusted, so files are opened without following links and facts are validated as they come in; a client's name is on
no command line; exit code 0 alone is no success.
"""
