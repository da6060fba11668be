"""Errors of the embedded server."""


class EmbeddedPostgresError(Exception):
    """The embedded database cannot run; the message tells the operator why and what to do."""
