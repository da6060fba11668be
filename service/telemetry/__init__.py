"""Log, metrics and traces. They never contain an API key, the signature of a link, or a path of the host."""
