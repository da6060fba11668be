"""`geomill convert`: converts files on this machine, or through a server."""
