/* How far a command of a session is; see progress.c. */
#pragma once
#include "gdal.h"

/* Begin with a command; its reports go to the pipe `answers`. */
void begin_reports(int answers);

/* How many features a dataset has; -1 if its driver would have to read them. Some drivers read a whole layer here, and
 * only once, so that what they say of it must be heard. */
int64_t known_features(handle dataset);

/* Begin with the features of a dataset, all of which will be read; returns their number, as `known_features` does. */
int64_t begin_reading(handle dataset);

/* Report which part of the file at `path` was read, for features of an unknown number, unless it is open several times. */
void follow_file(const char *path);

/* Note that another feature was read, and report it from time to time. */
void report_feature(void);

/* Report a share, as GDAL's functions call it. */
int report_share(double share, const char *text, void *nothing);
