"""The HTTP server that carries the application: the only package that imports Hypercorn and h11.

h11's readers parse HTTP/1.1, with our own connection class and buffer; Hypercorn runs the lifespan. This package uses
internals of both that may change with any version, so pyproject.toml pins the versions it was written for, and
`tests/unit/server/test_upstream.py` names each internal and fails when it changes.
"""
