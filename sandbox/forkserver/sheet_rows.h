/* What the rows and columns of the sheets of a workbook hold that its driver does not tell; see sheet_rows.c. */
#pragma once
#include <stdint.h>

#include "xml_tags.h"

/* How many, and the row of the first in its sheet, or the lowest in any sheet; from 1. */
struct seen {
    int64_t count, first;
};

/* Rows and columns with values that the workbook hides, rows without values between others, rows with totals of others, and
 * numbers in columns of numbers that also hold texts, with the first row of these texts. And how many columns without
 * texts hold several of numbers, dates and times of day. */
struct rows_found {
    struct seen hidden_rows, hidden_columns, blank_rows, totals, mixed;
    int unlike;
};

/* What a cell with a value holds. */
enum cell_kind { IS_TRUTH, IS_TEXT, IS_NUMBER, IS_MOMENT, IS_CLOCK };

struct sheet_rows;

/* For one workbook; sheets are examined one after the other, and their columns before their rows. */
struct sheet_rows *make_sheet_rows(void);
void begin_sheet_rows(struct sheet_rows *rows);

/* Columns and rows count from 1; a row may stand for several. Cells have a value;
   true and false are neither numbers nor texts. */
void hide_columns(struct sheet_rows *rows, int first, int last);
void begin_row_of(struct sheet_rows *rows, int number, int times, int is_hidden);
void add_cell(struct sheet_rows *rows, int column, enum cell_kind kind);

/* The same by the tags of XLSX. */
void examine_hidden_columns(struct sheet_rows *rows, struct tag columns);
void examine_row_of(struct sheet_rows *rows, struct tag row, int number);
void examine_cell_of(struct sheet_rows *rows, struct tag cell, enum cell_kind kind, const char *end, int is_filled);

/* What was found in all sheets; ends the last one. */
struct rows_found rows_of_all(struct sheet_rows *rows);
