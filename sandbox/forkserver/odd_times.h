/* Times in zones that drivers do not keep; see odd_times.c. */
#pragma once
#include <stdint.h>

/* How many a file holds; 0 if it cannot be read. */
int64_t count_odd_times(const char *name);
