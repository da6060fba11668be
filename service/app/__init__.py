"""Wiring: the only package that names concrete classes. It decides nothing."""
