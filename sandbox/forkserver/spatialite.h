/* A database of SpatiaLite without layers, made before there is a run; see spatialite.c. */
#include "gdal.h"

/* Make it, if the driver can. */
void prepare_spatialite(void);

/* The database, for one result, if the arguments create such a one; what only creates it is taken out of them. NULL if there
 * is none, or for the second result. */
handle take_spatialite(char **arguments);

/* Write what was taken, and closed since, to a file. Returns 0 if that fails. */
int write_spatialite(const char *target);
