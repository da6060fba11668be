"""Reads GeoJSON strictly, in one pass and in bounded memory: findings about it, and a normalized copy.

Owns the scan that every GeoJSON conversion uses; it runs in the gateway for small files and in the sandbox for others.
Owns no rules about targets: `dataloss` decides what a Shapefile loses. Invariants: memory is bounded for any file; a
document that the converter would not read as GeoJSON is rejected with a reason.
"""
