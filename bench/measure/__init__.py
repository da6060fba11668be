"""Measurements under load: CPU time, memory, latency, the lag of the event loop."""
