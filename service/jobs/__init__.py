"""A conversion from its admission to its end.

Owns the job's states, its record, the lease that a process holds on it, and the dispatch: where accepted jobs run.
Owns no money (metering), no file format and no conversion (engine).

What always holds: a job ends Completed or Failed exactly once, whoever is listening; a job whose process has died is
found by its lease and ended by another.
"""
