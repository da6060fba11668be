"""What a conversion from GeoJSON to Shapefile would lose.

Owns the streaming scan of a GeoJSON document (`scan`), which runs in the gateway for small files and in the jail for
all others, and the pure rules (`rules`) that turn its findings into the report of interface 2.4. It converts
nothing and opens no file but the one that it is given.

What always holds: memory is bounded whatever the file holds; a document that the converter would not read as GeoJSON
is refused with a reason; what a scan says is what the converter then does, value by value and geometry by geometry.
"""
