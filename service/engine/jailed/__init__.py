"""The programs that run in the jail, on files that nobody trusts: `python -m …<name> ARGUMENTS`.

They import the standard library only, since their start counts (the two for GeoParquet their packages too). They read
and write files of fixed names in their working directory and say what is wrong by exit code. What they write is
untrusted to the rest: a file may have taken them over.
"""
