/* What a layer holds, read in whole columns; see arrow.c. */
#include "layer_counts.h"

/* Whether the driver of a dataset reads whole columns, not features. */
int has_columns(handle dataset);

/* Count a layer of such a dataset. Returns 0 if its columns are not those of its features. */
int count_batches(handle layer, struct counted_layer *counted);
