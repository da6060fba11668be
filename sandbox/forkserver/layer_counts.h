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

/* Put a layer into the answer that is called like its file, without directories and extension. */
void tell_named_as(const char *file, const struct counted_layer *layer);

/* The layers of a result, and their columns, as they are found in its text. */
struct found_layer {
    char *name;
    int latest; /* the column that was found last */
    struct counted_layer counted;
};

struct found_layers {
    struct found_layer *all;
    int count, latest;
};

/* The layer of a name, which is made if there is none; it stays where it is until the next one is made. */
struct found_layer *layer_named(struct found_layers *, const char *name);

/* The column of a name, which is made if there is none; it stays where it is until the next one is made. */
struct counted_column *column_named(struct found_layer *, const char *name);

/* Put all of them into the answer. */
void tell_found(const struct found_layers *);

void forget_found(struct found_layers *);

/* The text of an element, of which only the beginning is kept. */
enum { LONGEST_TEXT = 1024 };
struct text_read {
    char start[LONGEST_TEXT + 1]; /* with a zero at its end, once it `is_kept` */
    size_t size;
};

void add_text(struct text_read *, const char *piece, size_t size);

/* Whether all of the text is kept. */
int is_kept(struct text_read *);
