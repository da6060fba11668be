"""Chosen processes are stopped, killed or cut off at chosen statements; then everything has to add up."""
