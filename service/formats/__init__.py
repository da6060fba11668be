"""The formats: what they are called, what they can hold, and what follows from it for one file.

Owns the format table (`table`, `registry`), the recognition of an upload (`detect`, `archive`), the vocabulary in which
a dataset is described (`geometry`, `facts`), the naming rules of the targets (`names`, `dbf_names`) and the decision
what to write (`plan`). It starts no process and reads an upload's content only as far as recognizing it needs.

What always holds: a decision that depends on a format asks a column of the table, never the format's name; `plan` is
pure; a client's file name never becomes a path.
"""
