"""Run a command on untrusted input: isolated, limited, many at a time."""
