"""What operators see: the log's events and their form. Never a key, a link's signature, or a path of the host."""
