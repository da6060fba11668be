"""The order of steps: the only place where capabilities meet.

One upload is one record that grows by being replaced. `accept_upload` is everything before the seam, bound to the
request; `run_job` everything after it, bound to the job, which ends exactly once whoever is listening.
"""
