/* Splits rows of separated values as Python's csv module does. */
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>

#include "csv_rows.h"

static void end_cell(struct row *row, size_t *size, size_t *begun)
{
    row->text[(*size)++] = 0;
    if (row->count < MOST_CELLS)
        row->cells[row->count] = row->text + *begun;
    row->count++;
    *begun = *size;
}

const char *next_row(const char *at, const char *end, char delimiter, struct row *row)
{
    enum { FIRST, PLAIN, QUOTED, AFTER_QUOTE } state = FIRST;
    size_t size = 0, begun = 0;
    row->count = row->has_bare_quote = 0;
    if (at < end && (*at == '\n' || *at == '\r'))
        return at + 1 + (*at == '\r');
    for (; at < end; at++) {
        char letter = *at;
        if (state == QUOTED) {
            const char *quote = memchr(at, '"', (size_t)(end - at)), *next = quote ? quote : end;
            memcpy(row->text + size, at, (size_t)(next - at));
            size += (size_t)(next - at);
            at = next;
            if (!quote)
                break;
            state = AFTER_QUOTE;
        } else if (letter == '\n' || letter == '\r') {
            at += 1 + (letter == '\r');
            break;
        } else if (letter == delimiter) {
            end_cell(row, &size, &begun);
            state = FIRST;
        } else if (letter == '"' && state != PLAIN) {
            if (state == AFTER_QUOTE)
                row->text[size++] = letter;
            state = QUOTED;
        } else {
            row->has_bare_quote |= letter == '"' || state == AFTER_QUOTE;
            row->text[size++] = letter;
            state = PLAIN;
        }
    }
    row->is_open = state == QUOTED;
    end_cell(row, &size, &begun);
    return at;
}
