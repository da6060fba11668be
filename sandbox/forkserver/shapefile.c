/*
 * Counts what a result in Shapefile holds from its bytes, with none of the code that wrote it: the records of the .dbf and
 * the values in them, and the shapes that the .shx and the .shp agree on. Files with elevations, names in other letters or
 * anything unexpected are left to the driver.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "layer_counts.h"
#include "mapped_file.h"
#include "shapefile.h"

enum { SHP_HEADER = 100, TYPE_AT = 32, SHX_RECORD = 8, WORD = 2, NULL_SHAPE_WORDS = 2, RECORD_HEAD = 8, MEASURED = 20, IN_SPACE = 10 };
enum { ONE_POINT = 1, LINES = 3, AREAS = 5, POINTS = 8, BOX_END = 36, NUMBER_BYTES = 4, POSITION_BYTES = 16, MEASURE_BYTES = 8, RANGE_BYTES = 16 };
enum { DBF_HEADER = 32, ROWS_AT = 4, SIZES_AT = 8, DBF_FIELD = 32, END_OF_FIELDS = 0x0d, MOST_FIELDS = 2048, NAME_BYTES = 10, KIND_AT = 11, WIDTH_AT = 16 };
enum { LONGEST_CELL = 255, MOST_PLAIN_DIGITS = 18 };

struct field {
    char name[NAME_BYTES + 1], kind;
    size_t start, width;
};

static uint32_t big(const char *from)
{
    const unsigned char *at = (const unsigned char *)from;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Whether the size of a shape is that of the parts and points it says it has. Measures may be left out. */
static int has_its_size(const char *shape, size_t size, uint32_t type)
{
    uint32_t flat = type % IN_SPACE, parts = 0, points = 1;
    size_t at = BOX_END, needed = NUMBER_BYTES + POSITION_BYTES, measures = MEASURE_BYTES;
    if (flat != ONE_POINT) {
        int has_parts = flat == LINES || flat == AREAS;
        needed = at + NUMBER_BYTES + (has_parts ? NUMBER_BYTES : 0);
        if ((!has_parts && flat != POINTS) || size < needed)
            return 0;
        parts = has_parts ? little(shape + at) : 0;
        points = little(shape + at + (has_parts ? NUMBER_BYTES : 0));
        needed += (size_t)parts * NUMBER_BYTES + (size_t)points * POSITION_BYTES;
        measures = RANGE_BYTES + (size_t)points * MEASURE_BYTES;
    }
    return size == needed || (type > MEASURED && size == needed + measures);
}

/* Count the shapes. Returns how many records there are, or -1 if the files differ or have elevations. */
static int64_t count_records(struct mapped *index, struct mapped *shapes, struct counted_layer *counted)
{
    if (index->size < SHP_HEADER || shapes->size < SHP_HEADER || (index->size - SHP_HEADER) % SHX_RECORD)
        return -1;
    uint32_t type = little(shapes->start + TYPE_AT);
    if (type >= MEASURED + IN_SPACE || type / IN_SPACE == 1)
        return -1;
    counted->has_m = type > MEASURED;
    for (const char *at = index->start + SHP_HEADER; at < index->start + index->size; at += SHX_RECORD) {
        size_t start = (size_t)big(at) * WORD, words = big(at + 4);
        if (start + RECORD_HEAD + words * WORD > shapes->size || words < NULL_SHAPE_WORDS)
            return -1;
        const char *record = shapes->start + start;
        if (big(record + 4) != words || little(record + RECORD_HEAD) != (words == NULL_SHAPE_WORDS ? 0 : type))
            return -1;
        if (words != NULL_SHAPE_WORDS && !has_its_size(record + RECORD_HEAD, words * WORD, type))
            return -1;
        counted->geometries += words != NULL_SHAPE_WORDS;
        pass(index, at);
        pass(shapes, record);
    }
    return (int64_t)((index->size - SHP_HEADER) / SHX_RECORD);
}

/* Read the header. Returns the number of columns, or -1 if it is not to be read here. */
static int take_fields(const struct mapped *table, size_t head, size_t width, struct field *fields)
{
    size_t start = 1;
    int count = 0;
    for (size_t at = DBF_HEADER; at + DBF_FIELD <= head && table->start[at] != END_OF_FIELDS; at += DBF_FIELD, count++) {
        if (count == MOST_FIELDS)
            return -1;
        struct field *field = fields + count;
        memcpy(field->name, table->start + at, NAME_BYTES);
        field->name[NAME_BYTES] = 0;
        for (const char *letter = field->name; *letter; letter++)
            if ((unsigned char)*letter >= 0x80)
                return -1;
        field->kind = table->start[at + KIND_AT];
        field->start = start;
        field->width = (unsigned char)table->start[at + WIDTH_AT];
        start += field->width;
    }
    return start == width ? count : -1;
}

/* The size of a number; one in plain digits is read without the library. */
static double size_of(const char *cell, size_t size)
{
    char copy[LONGEST_CELL + 1], *end;
    double value = 0, unit = 1;
    size_t at = *cell == '-', digits = 0;
    int is_fraction = 0;
    for (; at < size && digits <= MOST_PLAIN_DIGITS; at++) {
        if (cell[at] == '.' && !is_fraction)
            is_fraction = 1;
        else if (cell[at] >= '0' && cell[at] <= '9') {
            value = value * 10 + (cell[at] - '0');
            unit *= is_fraction ? 10 : 1;
            digits++;
        } else
            break;
    }
    if (at == size && digits)
        return value / unit;
    memcpy(copy, cell, size);
    copy[size] = 0;
    value = fabs(CPLStrtod(copy, &end));
    return end == copy + size ? value : NAN;
}

/* What a null cell is filled with besides blanks, by type of column; a text may contain any character. */
static char filling(char kind)
{
    return kind == 'N' || kind == 'F' ? '*' : kind == 'D' ? '0' : kind == 'L' ? '?' : ' ';
}

/* Count a cell. Returns 0 if it is a number that cannot be read. */
static int count_cell(struct counted_column *column, const struct field *field, const char *cell)
{
    size_t size = field->width, first = 0, blank = 0;
    char null = filling(field->kind);
    while (size && (cell[size - 1] == ' ' || !cell[size - 1]))
        size--;
    while (first < size && (cell[first] == ' ' || !cell[first]))
        first++;
    while (first + blank < size && cell[first + blank] == null)
        blank++;
    if (first + blank == size)
        return 1;
    int is_number = field->kind == 'N' || field->kind == 'F';
    double number = is_number ? size_of(cell + first, size - first) : NAN;
    column->filled++;
    column->total += number;
    return !is_number || !isnan(number);
}

/* Count the records of the table and their values. Returns 0 if it is not to be read here. */
static int count_table(struct mapped *table, struct field *fields, struct counted_layer *counted)
{
    if (table->size < DBF_HEADER)
        return 0;
    size_t head = little(table->start + SIZES_AT) & 0xffff, width = little(table->start + SIZES_AT) >> 16;
    counted->features = little(table->start + ROWS_AT);
    if (head < DBF_HEADER || !width || table->size < head + (size_t)counted->features * width)
        return 0;
    counted->count = take_fields(table, head, width, fields);
    if (counted->count < 0 || !(counted->columns = calloc((size_t)counted->count + 1, sizeof *counted->columns)))
        return 0;
    for (int number = 0; number < counted->count; number++)
        counted->columns[number].name = fields[number].name;
    const char *record = table->start + head;
    for (int64_t row = 0; row < counted->features; row++, record += width) {
        if (*record != ' ')
            return 0;
        for (int number = 0; number < counted->count; number++)
            if (!count_cell(counted->columns + number, fields + number, record + fields[number].start))
                return 0;
        pass(table, record);
    }
    return 1;
}

int count_shapefile(const char *name)
{
    static struct field fields[MOST_FIELDS];
    struct mapped index = map_beside(name, ".shx"), shapes = map_beside(name, ".shp"), table = map_beside(name, ".dbf");
    struct counted_layer counted = {.counts_values = 1};
    int64_t records = count_records(&index, &shapes, &counted);
    int is_counted = records >= 0 && count_table(&table, fields, &counted) && counted.features == records;
    if (is_counted)
        tell_named_as(name, &counted);
    free(counted.columns);
    unmap_file(&index);
    unmap_file(&shapes);
    unmap_file(&table);
    return is_counted;
}
