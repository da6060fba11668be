/* GDAL's drivers in the fork server and its children; see drivers.c. */

/* Set in a child, which has the drivers of the server. */
extern int are_registered;

/* Register all drivers but those that open no vector data: ogr2ogr uses none of them, but goes through them for every file.
 * Nothing is done where the program shows none of GDAL. */
void prepare_drivers(void);
