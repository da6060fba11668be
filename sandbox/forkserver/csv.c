/*
 * Examines a whole file of separated values before a driver reads it: its delimiter, its header row, and for each column
 * its type and how many of its cells are filled, numbers and geometries. The result is that of
 * service/engine/jailed/delimited.py, in a fraction of its time. If the two could differ (other encodings, unusual line
 * ends, digits of other scripts), or cells hold bare quotation marks, the file counts as odd and is left to that program.
 *
 * Cells are matched as its regular expressions match them.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "answer.h"
#include "csv.h"
#include "csv_rows.h"
#include "mapped_file.h"
#include "text_kinds.h"
#include "utf_8.h"

enum { SAMPLE_ROWS = 30, SAMPLE_LINES = 120, SAMPLE_BYTES = 1 << 20, YEAR_DIGITS = 4 };
static const char DELIMITERS[] = ",;\t|", OTHER_DELIMITERS[] = " :^~", NUMBERISH[] = "0123456789+-.,:/eETZ \t\r\n", SPACE[] = " \t\r\n";

struct cells {
    int kinds, is_pointed; /* whether points in it may separate thousands */
    int others;              /* the kinds of cells other than those set aside, since the first of these */
    int64_t filled, numbers, geometries, finer, returned, aside;
};

struct table {
    const char *start, *end; /* without a byte order mark */
    char delimiter;
    int is_odd, width, first_width, has_header, has_commas;
    int is_of_lines;  /* whether its delimiter is known, so that a single column is no failure to find it */
    const char *data; /* what follows the header */
    int64_t rows, blank, first_blank; /* below it, those of separators alone, and the first of these, from 1 */
    struct cells columns[MOST_CELLS];
};

/* ---- bytes ---- */

/* Whether programs could disagree about where lines end, the text is in another encoding, or has byte order marks. */
static int has_odd_bytes(const char *start, const char *end)
{
    for (const unsigned char *at = (const unsigned char *)start, *last = (const unsigned char *)end; at < last;) {
        unsigned char first = *at;
        if (first >= ' ' && first < 0x80) {
            at++;
            continue;
        }
        int is_control = first < ' ' && first != '\t' && first != '\n' && first != '\r';
        if (is_control || (first == '\r' && (at + 1 == last || at[1] != '\n')))
            return 1;
        int32_t code = next_character(&at, last);
        if (code < 0 || code == 0x85 || code == 0x2028 || code == 0x2029 || code == 0xfeff)
            return 1;
    }
    return 0;
}

/* Whether the first line may declare the delimiter, as some spreadsheet programs do. */
static int declares_delimiter(const char *start, const char *end)
{
    start += start < end && *start == '"';
    return end - start > 4 && strncasecmp(start, "sep=", 4) == 0;
}

static int is_odd_space(int32_t code)
{
    return code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

/* Whether a character may be a digit or white space of another script. */
static int is_odd_character(int32_t code)
{
    return is_odd_space(code) || (code >= 0x660 && code <= 0x1fff) || (code >= 0xa600 && code <= 0xabff) || code >= 0xff00;
}

/* Whether a cell may be a number, a date or a geometry written with characters outside ASCII. */
static int is_odd_cell(const char *text)
{
    int is_numberish = 1, is_odd = 0, is_first = 1;
    size_t size = strlen(text);
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    while (at < end && (is_numberish || is_first)) { /* nothing that follows makes it odd otherwise */
        int32_t code = next_character(&at, end);
        is_numberish &= code >= 0x80 || strchr(NUMBERISH, code) != NULL;
        is_odd |= is_odd_character(code);
        if (is_first && is_odd_space(code))
            return 1;
        is_first &= code < 0x80 && strchr(SPACE, code) != NULL;
    }
    return (is_odd && is_numberish) || text[size - 1] == '\n'; /* an expression may end before that */
}

static const char *type_of(const struct table *table, int kinds)
{
    int is_ambiguous = kinds & GROUPED && !(kinds & COMMA) && table->delimiter != ';';
    int is_code = kinds & CODE && !(kinds & (DECIMAL | POINTED | COMMA | GROUPED));
    if (!kinds || is_ambiguous || is_code)
        return "String";
    if (!(kinds & ~DAY))
        return "Date";
    if (!(kinds & ~(DAY | MOMENT)))
        return "DateTime";
    if (!(kinds & ~(WHOLE | LONG)))
        return "Integer64";
    return kinds & ~(WHOLE | DECIMAL | POINTED | COMMA | GROUPED | CODE) ? "String" : "Real";
}

/* ---- the delimiter ---- */

static const char *end_of_sample(const struct table *table)
{
    const char *at = table->start, *end = table->end;
    if (end - at > SAMPLE_BYTES)
        end = at + SAMPLE_BYTES;
    for (int lines = 0; lines < SAMPLE_LINES; lines++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        if (!next)
            return end == table->end ? end : NULL;
        at = next + 1;
    }
    return at;
}

/* How well a delimiter fits the first rows; what comes first counts most. */
struct fit {
    int is_even; /* whether all rows have the same number of cells, more than one */
    int first;   /* the cells of the first row */
    int is_even_below; /* whether all others have, and the first may be their title: it has several words, or is above names
                          of numbers; any other word is a name itself */
};

static int holds_number(const struct row *row)
{
    for (int number = 0; number < row->count; number++)
        if (is_number(row->cells[number]))
            return 1;
    return 0;
}

static int holds_names(const struct row *row)
{
    for (int number = 0; number < row->count; number++)
        if (!*row->cells[number])
            return 0;
    return !holds_number(row);
}

static struct fit fit_of(struct table *table, const char *end, char delimiter, struct row *row)
{
    enum { FEWEST = 3 };
    int second = 0, is_even_below = 1, rows = 0, seen = 0, first = 0, may_be_title = 0, is_below_names = 0;
    for (const char *at = table->start; at < end && rows < SAMPLE_ROWS; rows++) {
        at = next_row(at, end, delimiter, row);
        table->is_odd |= row->count > MOST_CELLS; /* only these are kept */
        if (!row->count || table->is_odd)
            continue;
        if (seen++ == 0) {
            first = row->count;
            may_be_title = strchr(row->cells[0], ' ') != NULL;
            continue;
        }
        may_be_title |= seen == 3 && is_below_names && holds_number(row);
        is_below_names = seen == 2 && holds_names(row);
        second = second ? second : row->count;
        is_even_below &= row->count == second;
    }
    int is_even = is_even_below && first > 1 && (seen == 1 || second == first);
    return (struct fit){is_even, first, is_even_below && second > 1 && seen >= FEWEST && may_be_title};
}

static int is_better(struct fit one, struct fit other)
{
    if (one.is_even != other.is_even)
        return one.is_even > other.is_even;
    return one.first != other.first ? one.first > other.first : one.is_even_below > other.is_even_below;
}

/* The delimiter with which the first rows have the most columns, and all the same number, but for a title. */
static void find_delimiter(struct table *table, struct row *row)
{
    const char *end = end_of_sample(table);
    struct fit best = {-1, -1, -1};
    table->is_odd |= !end;
    for (const char *delimiter = DELIMITERS; end && *delimiter; delimiter++) {
        struct fit fit = fit_of(table, end, *delimiter, row);
        if (is_better(fit, best)) {
            best = fit;
            table->delimiter = *delimiter;
        }
    }
}

/* ---- the whole ---- */

static int is_year(const char *cell)
{
    return (*cell == '1' || *cell == '2') && past_digits(cell) == cell + YEAR_DIGITS && !cell[YEAR_DIGITS];
}

/* Whether the first row is data and not a header; if that is unclear, the table is odd. */
static int holds_data(struct table *table, const struct row *row)
{
    int found = 0, years = 0;
    for (int number = 0; number < row->count; number++) {
        const char *cell = row->cells[number];
        int is_no_name = strpbrk(cell, "({") || cell[strspn(cell, " \t")] == '0' || strcasestr(cell, "empty"), geometry = is_no_name ? is_geometry(cell) : 0;
        int is_row_of_lines = geometry && geometry != UNSURE && row->count == 1 && table->is_of_lines;
        found += is_number(cell) || is_row_of_lines;
        years += is_year(cell);
        table->is_odd |= *cell && (is_odd_cell(cell) || (geometry && !is_row_of_lines));
    }
    table->is_odd |= years > 1 && years == found; /* they may be names */
    return found > 0;
}

/* Whether something may follow a geometry in WKT: at the end of a part, anything but the next part or the end. */
static int may_go_on(const char *cell)
{
    int has_named_parts = strcasestr(cell, "collection") || strcasestr(cell, "curve") || strcasestr(cell, "surface");
    const char *separators = has_named_parts ? " \t\r\n;" : " \t\r\n;,", *next = cell;
    while ((next = strchr(next, ')'))) {
        next += 1 + strspn(next + 1, separators);
        if (*next && !strchr("(),", *next) && strncasecmp(next, "empty", strlen("empty")) != 0)
            return 1;
    }
    return 0;
}

/* Whether a Z may be attached to the name of a type, as in PointZ (1 2 3). */
static int has_attached_z(const char *cell)
{
    for (const char *at = cell; (at = strpbrk(at, "zZ")); at++)
        if (at > cell && isalpha((unsigned char)at[-1]))
            return 1;
    return 0;
}

/* Whether a cell is no unit, as in 12 km, 2024-01-02 and -inf. */
static int is_no_unit(const char *cell)
{
    cell += strspn(cell, " \t\r\n+-.,");
    return isdigit((unsigned char)*cell) || !strncasecmp(cell, "inf", strlen("inf"));
}

static int may_hold_units(const struct table *table, const struct row *row)
{
    if (!table->has_header || table->rows != 1)
        return 0;
    for (int number = 0; number < row->count; number++)
        if (is_no_unit(row->cells[number]))
            return 0;
    return 1;
}

/* Count a text beside which all others of the column, whose kinds were `before`, may be of another type. */
static void set_aside(struct cells *column, const char *cell, int before, int may_be_unit)
{
    if (!(before & TEXT) && (column->kinds & TEXT) && (may_be_unit || stands_in(cell))) {
        column->others = before;
        column->aside = 1;
    } else if (column->aside && !(column->others & TEXT)) {
        int is_aside = stands_in(cell);
        column->aside += is_aside;
        column->others |= is_aside ? 0 : (int)kind_of(cell);
    }
}

static void examine_cell(struct table *table, struct cells *column, const char *cell, int may_be_unit)
{
    int before = column->kinds;
    column->filled++;
    if (!(column->kinds & TEXT)) {
        enum kind kind = kind_of(cell);
        column->kinds |= (int)kind;
        column->finer += kind == MOMENT && is_finer(cell);
        table->is_odd |= (kind & (DECIMAL | COMMA | CODE)) && has_many_digits(cell);
    }
    set_aside(column, cell, before, may_be_unit);
    column->returned += (column->kinds & TEXT) && strchr(cell, '\r');
    int number = is_number(cell), geometry = is_geometry(cell);
    column->numbers += number;
    column->geometries += geometry;
    table->is_odd |= geometry == UNSURE || (number && geometry) || is_odd_cell(cell) || shows_decimals(cell);
    table->is_odd |= geometry && (may_go_on(cell) || has_attached_z(cell));
    if (table->delimiter == ';') {
        table->has_commas |= number && strchr(cell, ',');
        column->is_pointed |= number && may_be_grouped(cell, '.');
    } else
        table->is_odd |= may_be_grouped(cell, ',');
}

static void examine_row(struct table *table, const struct row *row)
{
    int last = row->count, may_be_units, is_filled = 0;
    table->rows += last > 0;
    may_be_units = may_hold_units(table, row);
    table->is_odd |= row->has_bare_quote || row->is_open;
    while (last > table->width && !*row->cells[last - 1])
        last--;
    if (last > table->width)
        table->width = row->count;
    for (int number = 0; number < last; number++)
        if (*row->cells[number]) {
            is_filled = 1;
            examine_cell(table, table->columns + number, row->cells[number], may_be_units);
        }
    if (row->count > 1 && !is_filled && !table->blank++)
        table->first_blank = table->rows;
}

static void tell_columns(const struct table *table)
{
    put(",\"columns\":[");
    for (int number = 0; number < table->width; number++) {
        const struct cells *column = table->columns + number;
        int is_text_alone = !column->aside || !strcmp(type_of(table, column->others), "String");
        put("%s{\"filled\":%lld,\"numbers\":%lld,\"geometries\":%lld,\"finer\":%lld,\"returned\":%lld,", number ? "," : "",
            (long long)column->filled, (long long)column->numbers, (long long)column->geometries, (long long)column->finer,
            (long long)column->returned);
        put("\"aside\":%lld,\"type\":\"%s\"}", is_text_alone ? 0 : (long long)column->aside, type_of(table, column->kinds));
    }
    put("],\"blank\":%lld,\"first_blank\":%lld", (long long)table->blank, (long long)table->first_blank);
}

/* The first row that is not empty, as a header or as data. */
static const char *take_header(struct table *table, struct row *row)
{
    const char *at = table->start;
    for (row->count = 0; at < table->end && !row->count;)
        at = next_row(at, table->end, table->delimiter, row);
    table->is_odd |= !row->count || row->count > MOST_CELLS;
    if (table->is_odd)
        return table->end;
    table->width = table->first_width = row->count;
    table->is_odd |= row->count == 1 && !table->is_of_lines && strpbrk(row->cells[0], OTHER_DELIMITERS);
    table->has_header = !holds_data(table, row);
    table->data = table->has_header ? at : table->start;
    put(",\"header\":[");
    for (int number = 0; table->has_header && number < row->count; number++) {
        put(number ? "," : "");
        put_text(row->cells[number]);
    }
    put("]");
    if (!table->has_header)
        examine_row(table, row);
    return at;
}

/* Whether some points may separate thousands, since other numbers have decimal commas. */
static int has_odd_points(const struct table *table)
{
    int is_pointed = 0;
    for (int number = 0; number < table->width; number++)
        is_pointed |= table->columns[number].is_pointed && !(table->columns[number].kinds & DECIMAL);
    return is_pointed && table->has_commas;
}

static void look(struct table *table)
{
    struct row row = {.text = malloc((size_t)(table->end - table->start) + 1 + MOST_CELLS)};
    const char *at = table->end;
    if (!row.text)
        _exit(1);
    if (!table->delimiter)
        find_delimiter(table, &row);
    if (!table->is_odd)
        at = take_header(table, &row);
    while (at < table->end && !table->is_odd) {
        at = next_row(at, table->end, table->delimiter, &row);
        table->is_odd |= row.count > MOST_CELLS;
        if (!table->is_odd)
            examine_row(table, &row);
    }
    table->is_odd = table->is_odd || has_odd_points(table);
    free(row.text);
}

void examine_csv(const char *path, const char *known)
{
    struct mapped file = map_file(path);
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        _exit(1);
    put("{\"ok\":true");
    size_t mark = file.size >= 3 && memcmp(file.start, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    *table = (struct table){.start = file.start + mark, .end = file.start + file.size, .delimiter = *known, .is_of_lines = *known != 0};
    table->is_odd = !file.size || has_odd_bytes(table->start, table->end) || declares_delimiter(table->start, table->end);
    if (!table->is_odd)
        look(table);
    if (table->is_odd) {
        take_back_answer();
        put("{\"ok\":false");
    } else {
        tell_columns(table);
        put(",\"width\":%d,\"data_at\":%zu,\"delimiter\":", table->first_width, (size_t)(table->data - file.start));
        put_text((char[]){table->delimiter, 0});
    }
    unmap_file(&file);
    free(table);
}
