"""Our programs that run in the sandbox on untrusted files: `python -m …<name> ARGUMENTS`.

They import only the standard library, because their start-up time matters (the two for GeoParquet also import their
packages, and that for TopoJSON the scan of GeoJSON, which the same launcher has loaded). They read and write files with
fixed names in their working directory and report errors by exit code. The rest of the code does not trust what they
write: a file may have compromised them.
"""
