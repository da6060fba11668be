"""Chosen processes are stopped, killed or disconnected at chosen statements; afterwards everything must add up."""
