"""What goes wrong with the embedded server."""


class EmbeddedPostgresError(Exception):
    """The embedded database cannot run; the message tells whoever runs Geomill why and what to do."""
