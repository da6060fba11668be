"""Intake: a multipart request becomes fields and files on disk.

Owns the parsing of forms (`multipart`, `headers`), the rules for forms (`assembly`), the time limits of uploads
(`pace`), and the private directories of uploads (`workspace`). Does not know the content or the owner of files, nor
anything of HTTP except two header values and an iterator of chunks.

Invariants:

* Memory is independent of the size of an upload; every length that a client controls has a maximum.
* A name that came from a client is called `untrusted_name` and never becomes part of a path.
* A directory has exactly one owner: the workspace of its request until it is handed over, then its job. The directory
  is deleted when its owner ends, for whatever reason; after a crash, the next start deletes it.
"""
