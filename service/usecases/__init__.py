"""The order of steps: the only place where capabilities meet.

`pipeline` lists the steps of a conversion, `steps` holds them. `accept_upload` runs those bound to the request;
`run_job` those bound to the job, which ends exactly once whether or not anyone waits for it.
"""
