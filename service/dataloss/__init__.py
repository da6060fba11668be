"""What a conversion from GeoJSON to Shapefile would lose.

Owns the pure rules (`rules`) that turn the findings of a scan into the report of interface 2.4, and the warnings that
accompany it (`warnings`). The scan itself belongs to `service.geojson`. This package converts nothing and opens no
files.

Invariant: the report describes what the converter then does, value by value and geometry by geometry.
"""
