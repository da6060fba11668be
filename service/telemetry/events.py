"""The names of the log events; docs/operating.md lists them with their members.

Packages that may not import this module (`db`, `postgres_embedded`, `sandbox`) name their events where they log them.
"""

from typing import Final

SERVER_READY: Final = "server.ready"
SERVER_STOPPING: Final = "server.stopping"
SERVER_STOPPED: Final = "server.stopped"
CONNECTION_REFUSED: Final = "connection.refused"
REQUEST_FINISHED: Final = "request.finished"
REQUESTS_SHED: Final = "requests.shed"
REQUEST_FAILED: Final = "request.failed"
JOB_ADMITTED: Final = "job.admitted"
JOB_REFUSED: Final = "job.refused"
JOB_COMPLETED: Final = "job.completed"
JOB_FAILED: Final = "job.failed"
JOB_CANCELLED: Final = "job.cancelled"
RESULT_ERASED: Final = "result.erased"
ALLOWANCE_NEARLY_USED: Final = "allowance.nearly_used"
JOB_DEFECT: Final = "job.defect"
CONVERTER_CRASHED: Final = "converter.crashed"
STORAGE_FAILED: Final = "storage.failed"
JOB_LEFT: Final = "job.left"
JOBS_RECOVERED: Final = "jobs.recovered"
OUTPUTS_REMOVED: Final = "outputs.removed"
HISTORY_PRUNED: Final = "history.pruned"
UPKEEP_FAILED: Final = "upkeep.failed"
NO_MEMORY_DIRECTORY: Final = "memory_directory.none"
DISK_FULL: Final = "disk.full"
DIRECTORY_LEFT: Final = "directory.left"
