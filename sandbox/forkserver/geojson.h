/* What a result in GeoJSON holds; see geojson.c. */

/* Put into the answer how many features, geometries and values the file holds, if it is whole. */
void count_geojson(const char *file);
