/* Features whose coordinates mean nothing in another system; see straying.c. */
#pragma once
#include "gdal.h"

#pragma GCC visibility push(hidden)

/* Put into the answer how many features of a layer stray by more than `meters` on their way to the system `target`, and
 * the number of the first, from 1. `source` is the code of the layer's system, 0 for the one that it records. */
void tell_strays(handle layer, int source, int target, double meters);

#pragma GCC visibility pop
