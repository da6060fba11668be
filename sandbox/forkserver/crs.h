/* Coordinate systems, and which of them a result records; see crs.c. */
#include "gdal.h"

/* The system with an EPSG code, x before y; NULL if there is none. */
handle system_of_code(int code);

/* Put into the answer whether a result records a system from which something leads to the one with the EPSG code, and how
 * far this moves its first features, as changes of their extent. Returns 0 if it cannot be read. */
int compare_system(const char *name, int code, options drivers, options open_options);
