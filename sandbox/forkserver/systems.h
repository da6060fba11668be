/* Which coordinate system a result records; see systems.c. */
#include "gdal.h"

#pragma GCC visibility push(hidden)

/* Put into the answer whether a result records a system from which something leads to the one with the EPSG code, and how
 * far this moves its first features, as changes of their extent. Returns 0 if it cannot be read. */
int compare_system(const char *name, int code, options drivers, options open_options);

#pragma GCC visibility pop
