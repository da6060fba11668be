"""The use cases: the only package that combines the other capabilities.

`pipeline` lists the steps of a conversion, which are defined in `steps`. `accept_upload` runs the steps bound to the
request; `run_job` those bound to the job, which ends exactly once whether or not anyone waits for it.
"""
