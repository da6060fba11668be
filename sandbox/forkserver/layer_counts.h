/* What a layer of a result holds, in numbers; see layer_counts.c. */
#pragma once
#include <stdint.h>

#include "gdal.h"

/* A column: how many values are not null, how many of these are empty texts, and the sum of the sizes of its numbers, which
 * is not a number if one of them is none. */
struct counted_column {
    const char *name;
    int64_t filled, empty;
    double total;
};

struct counted_layer {
    int64_t features, geometries;
    int has_z, has_m, count, counts_values;
    struct counted_column *columns;
};

/* Count a geometry that is not empty, by its type. */
void count_geometry(struct counted_layer *layer, int type);

/* Count the number that a text of `size` bytes is, if it is one. */
void count_text(struct counted_column *column, const char *text, size_t size);

/* Put a layer into the answer. */
void tell_counted(const char *name, const struct counted_layer *layer);
