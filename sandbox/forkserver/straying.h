/* Features whose coordinates mean nothing in another system; see straying.c. */
#pragma once
#include "gdal.h"

/* The least and the greatest x at which a projection is of use. */
struct reach {
    double least, most;
};

/* Put into the answer how many features of a layer stray by more than `meters`, or beyond `reach`, on their way to the system
 * `target`, how many are torn, how many lose parts at a pole, and the numbers of the first, from 1. `source` is the code of the
 * layer's system, 0 for the one that it records; `wraps` says that the converter is to cut at the date line, and `is_shortest`
 * that edges are the shortest way between their ends, in degrees. */
void tell_strays(handle layer, int source, int target, double meters, struct reach reach, int wraps, int is_shortest);
