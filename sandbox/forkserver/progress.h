/* How far a command of a session is; see session.c. */
#include "gdal.h"

#pragma GCC visibility push(hidden)

/* Begin with the features of a dataset, all of which will be read. */
void begin_reading(handle dataset);

/* Note that another feature was read, and report it from time to time. */
void report_feature(void);

#pragma GCC visibility pop
