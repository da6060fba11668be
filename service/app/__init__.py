"""Wiring: concrete classes are named here alone, nothing is decided here."""
