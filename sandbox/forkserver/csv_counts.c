/*
 * Counts what a result in CSV holds, with none of the code that wrote it: its driver takes as long to read a table as to write it.
 * Geometries are in the first columns, as WKT or as coordinates. Anything unexpected is left to the driver.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "csv_counts.h"
#include "csv_rows.h"
#include "layer_counts.h"
#include "mapped_file.h"

enum { XY = 2, LONGEST_ROW = 1 << 20 }; /* the driver refuses rows of 10 MB and more */
enum { FOREIGN, BLANK, OPENING, PART_END, NUMERIC };

static const unsigned char KINDS[256] = {
    [' '] = BLANK,   ['('] = OPENING, [','] = PART_END, [')'] = PART_END, ['0' ... '9'] = NUMERIC,
    ['+'] = NUMERIC, ['-'] = NUMERIC, ['.'] = NUMERIC,  ['E'] = NUMERIC,  ['e'] = NUMERIC,
};

/* The names of geometries, and in how many brackets their positions are. */
static const struct {
    const char *name;
    int depth;
} GEOMETRIES[] = {{"POINT", 1},      {"LINESTRING", 1},      {"POLYGON", 2},
                  {"MULTIPOINT", 2}, {"MULTILINESTRING", 2}, {"MULTIPOLYGON", 3}};

/* How a table holds its geometries: in its first `columns`, of which the first is WKT or all are coordinates. */
struct places {
    int columns, is_text;
};

/* In how many brackets the positions of a geometry are; 0 if no such geometry begins there. `name` moves past its name. */
static int take_name(const char **name)
{
    size_t size = strcspn(*name, " ");
    for (size_t number = 0; number < sizeof GEOMETRIES / sizeof *GEOMETRIES; number++)
        if (strlen(GEOMETRIES[number].name) == size && memcmp(*name, GEOMETRIES[number].name, size) == 0) {
            *name += size;
            return GEOMETRIES[number].depth;
        }
    return 0;
}

/* Whether the rest of a geometry is brackets around positions of so many numbers. */
static int holds_positions(const char *at, int deepest, int dimensions)
{
    int depth = 0, numbers = 0, before = BLANK, is_odd = 0;
    do {
        int kind = KINDS[(unsigned char)*at];
        numbers += kind == NUMERIC && before != NUMERIC;
        before = kind;
        if (kind == OPENING)
            is_odd |= ++depth > deepest || numbers;
        else if (kind == PART_END) {
            is_odd |= numbers != (depth == deepest ? dimensions : 0);
            depth -= *at == ')';
            numbers = 0;
        } else
            is_odd |= kind == FOREIGN;
    } while (*++at && depth && !is_odd);
    return !is_odd && !depth && !*at;
}

static int count_wkt(struct counted_layer *counted, const char *text)
{
    int deepest = take_name(&text), has_z = 0, has_m = 0;
    if (!deepest || *text++ != ' ')
        return 0;
    text += has_z = *text == 'Z';
    text += has_m = *text == 'M';
    text += *text == ' ';
    counted->geometries++;
    counted->has_z |= has_z;
    counted->has_m |= has_m;
    return *text == '(' && holds_positions(text, deepest, XY + has_z + has_m);
}

static void count_coordinates(struct counted_layer *counted, char **cells, int dimensions)
{
    if (!*cells[0] || !*cells[1])
        return;
    counted->geometries++;
    counted->has_z |= dimensions > XY && *cells[XY];
}

/* Whether the driver may take a column of this name for geometries. */
static int may_hold_places(const char *name)
{
    static const char *const NAMES[] = {"X", "Y", "Z", "WKT"};
    int may = strncasecmp(name, "_WKT", strlen("_WKT")) == 0;
    for (size_t number = 0; number < sizeof NAMES / sizeof *NAMES; number++)
        may |= strcasecmp(name, NAMES[number]) == 0;
    return may;
}

/* Take the columns from the header. Returns 0 if it is not to be read here. */
static int take_columns(const struct row *header, struct found_layer *layer, struct places *places)
{
    static const char *const COORDINATES[] = {"X", "Y", "Z"};
    if (header->count < 2 || header->count > MOST_CELLS || header->has_bare_quote)
        return 0;
    places->is_text = strcmp(header->cells[0], "WKT") == 0;
    places->columns = places->is_text;
    while (!places->is_text && places->columns < XY + 1 && places->columns < header->count &&
           strcmp(header->cells[places->columns], COORDINATES[places->columns]) == 0)
        places->columns++;
    int is_odd = !places->is_text && places->columns == 1;
    for (int column = 0; column < header->count && !is_odd; column++) {
        is_odd |= !*header->cells[column] || (column >= places->columns && may_hold_places(header->cells[column]));
        is_odd |= column_named(layer, header->cells[column]) != layer->counted.columns + column;
    }
    return !is_odd;
}

/* Count a row. Returns 0 if the driver must do it. */
static int count_row(struct counted_layer *counted, struct row *row, const struct places *places)
{
    if (row->count != counted->count || row->has_bare_quote || row->is_open)
        return 0;
    counted->features++;
    for (int column = 0; column < row->count; column++) {
        size_t size = strlen(row->cells[column]);
        if (size || places->is_text || column >= places->columns) /* coordinates are numbers, and never empty */
            count_text(counted->columns + column, row->cells[column], size);
    }
    if (places->is_text)
        return !*row->cells[0] || count_wkt(counted, row->cells[0]);
    if (places->columns)
        count_coordinates(counted, row->cells, places->columns);
    return 1;
}

static int count_rows(struct mapped *file, struct row *row, struct found_layer *layer)
{
    const char *end = file->start + file->size;
    struct places places;
    const char *at = next_row(file->start, end, ',', row);
    int is_counted = take_columns(row, layer, &places);
    while (is_counted && at < end) {
        const char *start = at;
        at = next_row(at, end, ',', row);
        is_counted = at - start < LONGEST_ROW && !memchr(start, 0, (size_t)(at - start)) && count_row(&layer->counted, row, &places);
        pass(file, at);
    }
    return is_counted;
}

int count_csv(const char *name)
{
    struct mapped file = map_file(name);
    struct row row = {.text = malloc(file.size + 1)};
    struct found_layers found = {0};
    struct found_layer *layer = layer_named(&found, name);
    if (!row.text)
        _exit(1);
    int is_counted = file.size && count_rows(&file, &row, layer);
    if (is_counted)
        tell_named_as(name, &layer->counted);
    forget_found(&found);
    free(row.text);
    unmap_file(&file);
    return is_counted;
}
