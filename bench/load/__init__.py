"""Load generation: scenarios, clients and the server under load."""
