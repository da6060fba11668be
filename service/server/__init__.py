"""The HTTP server that carries the application: the only package that imports Hypercorn and h11.

HTTP/1.1 is h11's, with a protocol class and a buffer of ours; HTTP/2 is Hypercorn's. What is leaned on beyond their
interfaces may change with any version, so both are pinned in pyproject.toml to those that this was written for, and
`tests/unit/server/test_upstream.py` names each such thing and fails when it changes.
"""
