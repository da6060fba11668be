"""How long a test waits for an event that must come: on a busy host it may take minutes, and time proves nothing."""

PATIENCE_SECONDS = 200.0
"""Less than a test may take, so that the test can say what did not come."""
