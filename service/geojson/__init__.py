"""GeoJSON read strictly, in one pass and in bounded memory: what a document holds, and a copy that all can read.

Owns the scan that every GeoJSON conversion uses. Owns no rule about targets: what a Shapefile loses is `dataloss`.
"""
