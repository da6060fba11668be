"""What is measured while the load lasts: CPU time, memory, latency, the lag of the event loop."""
