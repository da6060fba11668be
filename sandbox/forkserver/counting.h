/* What the layers of a result hold, in numbers; see counting.c. */
#include <stdint.h>

#include "gdal.h"

/* Put all layers of a result into the answer, as its driver reads them; values only where there are at most `most_cells`.
 * Returns 0 if it cannot be read. */
int count_result(const char *name, int64_t most_cells, options drivers, options open_options);
