"""A conversion from its admission to its end.

Owns the job's states, its record, the lease that a process holds on it, and the dispatch: where accepted jobs run.
Owns no money (metering), no file format and no conversion (engine).

Invariants: a job ends Completed or Failed exactly once, whether or not a client is waiting; if the process of a job
dies, its lease expires and another process ends the job.
"""
