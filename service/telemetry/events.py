"""The names of the log's events. Few, each with the same members every time."""

from typing import Final

SERVER_READY: Final = "server.ready"
SERVER_STOPPED: Final = "server.stopped"
REQUEST_FINISHED: Final = "request.finished"
REQUEST_FAILED: Final = "request.failed"
JOB_ADMITTED: Final = "job.admitted"
JOB_REFUSED: Final = "job.refused"
JOB_COMPLETED: Final = "job.completed"
JOB_FAILED: Final = "job.failed"
JOB_DEFECT: Final = "job.defect"
STORAGE_FAILED: Final = "storage.failed"
JOB_LEFT: Final = "job.left"
JOBS_RECOVERED: Final = "jobs.recovered"
OUTPUTS_REMOVED: Final = "outputs.removed"
UPKEEP_FAILED: Final = "upkeep.failed"
