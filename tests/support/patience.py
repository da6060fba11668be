"""How long a test waits for what has to come: on a busy host that may take minutes, and nothing is judged by it."""

PATIENCE_SECONDS = 200.0
"""Less than a test may take, so that the test can say what did not come."""
