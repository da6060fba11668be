/* What is seen of the values in columns; see columns.c. */
#pragma once
#include <stddef.h>

#include "gdal.h"

enum { MOST_COLUMNS = 2000, DISTINCT = 3 };

/* Further counts of values and first rows, from 1 on or 0, by their names in the answer. */
#define COLUMN_COUNTS(each) \
    each(empty) each(over_dbf_limit) each(trailing_blanks) each(leading_blanks) each(space_around) each(uneven_space) \
    each(carriage_returns) each(control) each(no_layer_names) each(like_json) each(like_markup) each(like_formulas) \
    each(like_geometries) each(like_numbers) \
    each(like_escapes) each(first_like_escapes) each(exponents) each(first_exponents) each(beyond_15_digits) each(first_beyond_15_digits) \
    each(infinite) each(nans) each(near_infinite) each(tiny) each(at_32_bits) each(like_unset) each(beyond_32_bits) each(beyond_53_bits) \
    each(no_day) each(first_no_day) each(before_1000) each(before_march_1900) each(until_1970) each(fractions) each(zoned) each(offsets) \
    each(unsteady) each(unnumbered) each(beyond_dbf) each(first_near_infinite) each(first_beyond_dbf)
#define DECLARE(name) int64_t name;

enum { FITS_BOOLEAN = 1, FITS_INTEGER = 2, FITS_REAL = 4, FITS_DATE = 8, FITS_DATETIME = 16, FITS_ALL = 31 };

struct column {
    const char *name;
    int type, subtype, fits, distinct, begins_empty, is_id;
    int64_t row, filled, inexact_whole, inexact, first_id;
    COLUMN_COUNTS(DECLARE)
    size_t longest;
    double total;
    char *values[DISTINCT], *prefix;
};

#undef DECLARE

/* The value of a field of a feature, NULL if it has none; a number that is none counts as missing. */
const union value *value_of(handle feature, int field, int type);

/* Look at the value of a field in a row, which are counted from 1 on. */
void examine_value(struct column *column, handle feature, int field, const union value *value, int64_t row);

/* Put a column into the answer. */
void tell_column(const struct column *column);

void forget_columns(struct column *columns, int count);
