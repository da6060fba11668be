/* The rows of a file of separated values; see csv_rows.c. */
#pragma once

enum { MOST_CELLS = 2000 };

/* A row: its cells as zero-terminated texts, one after the other. */
struct row {
    char *text, *cells[MOST_CELLS];
    int count, has_bare_quote; /* within a cell that does not begin with one, or before its end: drivers differ about its meaning */
    int is_open;               /* whether the file ends within a quoted text */
};

/* Read the row that begins at `at`, and return where it ends. An empty line is a row without cells. Only the
 * first MOST_CELLS cells are kept. The text must have room for the whole row and a zero. */
const char *next_row(const char *at, const char *end, char delimiter, struct row *);
