"""Geomill: a metered HTTP service that converts geospatial files."""
