/* What is seen of the values in columns; see columns.c. */
#pragma once
#include <stddef.h>

#include "gdal.h"

#pragma GCC visibility push(hidden)

enum { DISTINCT = 3 };
enum { FITS_BOOLEAN = 1, FITS_INTEGER = 2, FITS_REAL = 4, FITS_DATE = 8, FITS_DATETIME = 16, FITS_ALL = 31 };

struct column {
    const char *name;
    int type, subtype, fits, distinct, begins_empty;
    int64_t row, first_near_infinite, first_beyond_dbf; /* from 1 on; 0 if there is none */
    int64_t filled, over, empty, geometries, blanks, leading, returns, controls, jsons, markup, formulas, zeros, infinite, near_infinite, tiny, older, old, early, fractions, zoned, offsets, unsteady, at_32, beyond_32, beyond_53, inexact_whole, inexact, beyond_dbf;
    size_t longest;
    double total;
    char *values[DISTINCT], *prefix;
};

/* Look at the value of a field in a row, which are counted from 1 on. */
void see(struct column *column, handle feature, int field, const union value *value, int64_t row);

/* Put a column into the answer. */
void tell_column(const struct column *column);

void forget_columns(struct column *columns, int count);

#pragma GCC visibility pop
