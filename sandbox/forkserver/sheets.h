/* The sheets of a workbook that is counted in its text: rows of cells below a header. */
#pragma once
#include "layer_counts.h"

struct sheet {
    struct found_layer *layer;
    int64_t rows, empty_rows; /* of those before, and how many of the last ones have no cell with a value */
    int cells, is_odd;
};

enum cell { TEXT, NUMBER, OTHER };

void begin_sheet(struct sheet *, struct found_layer *);

void begin_row(struct sheet *);

/* Count the cell of a column, from 0, by its text; what is neither a text nor a number, such as a date, has no sum. A header that is not
 * made of different texts makes the sheet odd. */
void count_cell(struct sheet *, int column, enum cell, struct text_read *);
