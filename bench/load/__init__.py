"""Putting load on a server: scenarios, clients, the site under load."""
