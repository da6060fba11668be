"""The way in: one multipart request becomes fields and files on disk.

Owns the reading of forms (`multipart`, `headers`), the rules that a form must keep (`assembly`), the time a client may
take (`pace`), and the private directories that uploads live in (`workspace`). Does not know what the files hold, whose
they are, or that HTTP exists beyond two header values and an iterator of chunks.

What always holds:

* Memory is independent of the size of what is sent; every length that a client chooses has a cap.
* A name that came from a client is called `untrusted_name` and never becomes part of a path.
* A directory belongs to exactly one owner: the workspace of its request until it is handed over, its job after. When
  the owner ends, by whatever end, the directory goes; after a crash the next start sweeps it.
"""
