"""The HTTP server that carries the application: the only package that imports h11.

h11's readers parse HTTP/1.1, with our own connection class and buffer. This package uses internals of h11 that may
change with any version, so pyproject.toml pins the version it was written for, and `tests/unit/server/test_upstream.py`
names each internal and fails when it changes.
"""
