/*
 * Finds what the rows and columns of the sheets of a workbook hold that its driver does not tell. The rules and counts are
 * those of service/engine/jailed/sheet_rows.py.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sheet_rows.h"

enum { MOST_COLUMNS = 16384, MOST_LETTERS = 3, LETTERS = 26 };

struct cells {
    int64_t numbers, texts;
    int first_text;
    char is_hidden, is_counted; /* as a hidden one that has values */
    char has_number, has_moment, has_clock;
};

struct sheet_rows {
    struct rows_found found;
    int row, times, last_filled, last_hidden, column; /* from 1; 0 before the first */
    char is_hidden, is_counted, is_total;
    int width; /* how many columns are in use */
    struct cells columns[MOST_COLUMNS];
};

struct sheet_rows *make_sheet_rows(void)
{
    struct sheet_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        _exit(1);
    return rows;
}

static void add(struct seen *seen, int64_t count, int64_t row)
{
    seen->count += count;
    if (count && row && (!seen->first || row < seen->first))
        seen->first = row;
}

/* Columns are mostly of numbers if these outnumber the texts below the header. */
static void end_sheet(struct sheet_rows *rows)
{
    for (int number = 0; number < rows->width; number++) {
        const struct cells *column = rows->columns + number;
        if (column->texts && column->numbers > column->texts)
            add(&rows->found.mixed, column->numbers, column->first_text);
        rows->found.unlike += !column->texts && column->has_number + column->has_moment + column->has_clock > 1;
    }
}

void begin_sheet_rows(struct sheet_rows *rows)
{
    end_sheet(rows);
    memset(rows->columns, 0, (size_t)rows->width * sizeof *rows->columns);
    rows->row = rows->last_filled = rows->last_hidden = rows->column = rows->width = 0;
}

static int is_true(struct tag tag, const char *name)
{
    struct tag value = attribute(tag, name);
    return value.end && (begins(value.start, value.end, "1") || begins(value.start, value.end, "true"));
}

/* Columns are listed in order; others are not looked at, so that each is hidden once. */
void hide_columns(struct sheet_rows *rows, int first, int last)
{
    last = last < MOST_COLUMNS ? last : MOST_COLUMNS;
    if (first <= rows->last_hidden || last < first)
        return;
    for (int number = first; number <= last; number++)
        rows->columns[number - 1].is_hidden = 1;
    rows->last_hidden = last;
    rows->width = last > rows->width ? last : rows->width;
}

void examine_hidden_columns(struct sheet_rows *rows, struct tag columns)
{
    if (is_true(columns, "hidden"))
        hide_columns(rows, number_of(columns, "min", 0), number_of(columns, "max", 0));
}

void begin_row_of(struct sheet_rows *rows, int number, int times, int is_hidden)
{
    rows->row = number;
    rows->times = times;
    rows->is_hidden = (char)is_hidden;
    rows->column = rows->is_counted = rows->is_total = 0;
}

void examine_row_of(struct sheet_rows *rows, struct tag row, int number)
{
    begin_row_of(rows, number, 1, is_true(row, "hidden"));
}

/* The column that a reference to a cell names, such as 27 for AB7; 0 if it is none. */
static int column_at(const char **at, const char *end)
{
    int column = 0;
    const char *letter = *at;
    for (; letter < end && *letter >= 'A' && *letter <= 'Z' && letter - *at < MOST_LETTERS; letter++)
        column = column * LETTERS + *letter - 'A' + 1;
    *at = letter;
    return column;
}

/* A part of a reference to cells, such as $AB$7: its row, 0 if it is in another column. */
static int row_in(const char **at, const char *end, int column)
{
    enum { MOST_DIGITS = 7 };
    int row = 0;
    *at += *at < end && **at == '$';
    if (column_at(at, end) != column)
        return 0;
    *at += *at < end && **at == '$';
    for (int digits = 0; *at < end && isdigit((unsigned char)**at) && digits < MOST_DIGITS; digits++, ++*at)
        row = 10 * row + **at - '0';
    return row;
}

/* Whether a formula adds up other cells of its column, as SUM(B2:B9), or a column of its table, as SUBTOTAL(109,[n]). */
static int is_total(const char *at, const char *end, int row, int column)
{
    static const char SUM[] = "SUM(", SUBTOTAL[] = "SUBTOTAL(";
    const char *close = memchr(at, '<', (size_t)(end - at));
    int is_sum = begins(at, end, SUM);
    if (!close || close - at < (long)sizeof SUM || close[-1] != ')' || !(is_sum || begins(at, end, SUBTOTAL)))
        return 0;
    at += is_sum ? sizeof SUM - 1 : sizeof SUBTOTAL - 1;
    if (!is_sum) {
        while (at < close && isdigit((unsigned char)*at))
            at++;
        at += *at == ',';
        if (close[-2] == ']' && memchr(at, '[', (size_t)(close - at)))
            return 1;
    }
    int first = row_in(&at, close, column), is_range = *at == ':', last = 0;
    at += is_range;
    last = is_range ? row_in(&at, close, column) : 0;
    return first && last > first && at == close - 1 && (row < first || row > last);
}

static void examine_filled_row(struct sheet_rows *rows)
{
    if (rows->is_counted)
        return;
    rows->is_counted = 1;
    add(&rows->found.hidden_rows, rows->is_hidden ? rows->times : 0, rows->row);
    if (rows->last_filled && rows->row > rows->last_filled + 1)
        add(&rows->found.blank_rows, rows->row - rows->last_filled - 1, rows->last_filled + 1);
    rows->last_filled = rows->row + rows->times - 1;
}

void add_cell(struct sheet_rows *rows, int number, enum cell_kind kind)
{
    struct cells *column = rows->columns + number - 1;
    examine_filled_row(rows);
    rows->width = number > rows->width ? number : rows->width;
    add(&rows->found.hidden_columns, column->is_hidden && !column->is_counted, 0);
    column->is_counted = 1;
    if (rows->row < 2)
        return;
    column->has_number |= kind == IS_NUMBER;
    column->has_moment |= kind == IS_MOMENT;
    column->has_clock |= kind == IS_CLOCK;
    column->numbers += kind > IS_TEXT ? rows->times : 0;
    column->texts += kind == IS_TEXT ? rows->times : 0;
    column->first_text = kind != IS_TEXT || column->first_text ? column->first_text : rows->row;
}

void examine_cell_of(struct sheet_rows *rows, struct tag cell, enum cell_kind kind, const char *end, int is_filled)
{
    struct tag reference = attribute(cell, "r"), formula;
    const char *at = reference.start;
    int named = reference.end ? column_at(&at, reference.end) : 0;
    rows->column = named ? named : rows->column + 1;
    if (!is_filled || rows->column > MOST_COLUMNS)
        return;
    add_cell(rows, rows->column, kind);
    if (rows->row < 2 || kind == IS_TRUTH)
        return;
    formula = tag_at(past_blanks(cell.end + 1, end), end, "<f");
    if (formula.end && formula.end[-1] != '/' && !rows->is_total && is_total(formula.end + 1, end, rows->row, rows->column)) {
        rows->is_total = 1;
        add(&rows->found.totals, 1, rows->row);
    }
}

struct rows_found rows_of_all(struct sheet_rows *rows)
{
    begin_sheet_rows(rows);
    return rows->found;
}
