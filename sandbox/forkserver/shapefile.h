/* What a Shapefile holds; see shapefile.c. */

/* Put into the answer what the Shapefile `name` holds. Returns 0, with nothing put, if it is another file, or for its
 * driver to judge. */
int count_shapefile(const char *name);
