/* The usual systems as text; see crs_definitions.c. */
#include "gdal.h"

/* Keep how PROJ writes a system for ESRI, for children. */
void keep_definition(handle system);
