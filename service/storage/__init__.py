"""Storage of results until their retention ends: an S3 bucket or a directory on this host.

Owns the keys and bytes of stored objects and the links with which clients download them. Callers decide who may have
a link, how long a result is kept and which objects should exist; `objects` lets them compare.

Invariants: an object is complete or absent, whatever fails while it is written; a key reveals nothing about the client
or the file; a link is never valid after `Link.expires_at`; if the store fails, adapters raise only
`StorageUnavailable`.
"""
