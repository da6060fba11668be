"""Where the interface of the service is, below the prefix of a site."""

SINGLE, BATCH, ANALYZE, JOBS = (f"/api/geo/convert/{name}" for name in ("file", "batch", "analyze", "jobs"))
