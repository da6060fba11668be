"""The HTTP server that carries the application: the only package that imports Hypercorn and h11.

What it replaces of them is private there, so that both are pinned in pyproject.toml to the versions that this was
written for; `tests/unit/server/test_upstream.py` names each and fails when it changes.
"""
