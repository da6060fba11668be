"""Where results are kept until their retention ends: an S3 bucket or a directory of this host.

Owns the names of stored objects, their bytes and the links under which clients fetch them. Does not own who may have
a link, how long a result is kept, or which objects should exist: callers say so, and `objects` lets them compare.

What always holds: an object is whole or absent, whatever dies while it is written; a key says nothing of the client or
the file; a link is never valid longer than `Link.expires_at`; no exception but `StorageUnavailable` leaves an adapter
when the store is at fault.
"""
