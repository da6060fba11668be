/*
 * Counts what a layer holds from its columns, as drivers hand them over in the Arrow C data interface, whose structures are
 * declared here. Only FlatGeobuf's driver is asked: those of most formats make a feature of each row for this, too, and
 * those of GeoPackage and GeoParquet start threads, which a run may not. Its columns lack measures, and have times that
 * features lack because they cannot be read, so that layers with measures or times are counted feature by feature.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "arrow.h"

struct schema {
    const char *format, *name, *metadata;
    int64_t flags, children_count;
    struct schema **children, *dictionary;
    void (*release)(struct schema *);
    void *own;
};

struct array {
    int64_t length, nulls, offset, buffers_count, children_count;
    const void **buffers;
    struct array **children, *dictionary;
    void (*release)(struct array *);
    void *own;
};

struct stream {
    int (*get_schema)(struct stream *, struct schema *);
    int (*get_next)(struct stream *, struct array *);
    const char *(*get_last_error)(struct stream *);
    void (*release)(struct stream *);
    void *own;
};

GDAL int OGR_L_GetArrowStream(handle, struct stream *, options);

enum { CODE = 0x0fffffff, WKB_HEAD = 5, WKB_COUNT = 9, DIMENSIONS = 1000 };

static uint32_t number_at(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static double real_at(const unsigned char *at)
{
    double found;
    memcpy(&found, at, sizeof found);
    return found;
}

/* Whether a geometry has no position or part, of which the driver writes none. */
static int is_empty(const unsigned char *wkb, int64_t size, uint32_t flat)
{
    if (flat == POINT && size >= WKB_HEAD + 16)
        return isnan(real_at(wkb + WKB_HEAD)) && isnan(real_at(wkb + WKB_HEAD + 8));
    return size < WKB_COUNT || number_at(wkb + WKB_HEAD) == 0;
}

/* Count a geometry in WKB: little-endian, with Z in the thousands or in the highest bit of its type. */
static void count_wkb(struct counted_layer *counted, const unsigned char *wkb, int64_t size)
{
    if (size < WKB_HEAD || *wkb != 1)
        return;
    uint32_t type = number_at(wkb + 1), code = type & CODE;
    if (is_empty(wkb, size, code % DIMENSIONS))
        return;
    counted->geometries++;
    counted->has_z |= type >> 31 || code / DIMENSIONS % 2 == 1;
}

static int is_filled(const struct array *array, int64_t at)
{
    const unsigned char *bits = array->buffers_count ? array->buffers[0] : NULL;
    return !bits || bits[at / 8] >> at % 8 & 1;
}

/* Where the text or the bytes of a row are; the format is in capitals if their positions take eight bytes. */
static const char *bytes_at(const struct array *array, char format, int64_t at, int64_t *size)
{
    const char *bytes = array->buffers[2];
    if (format == 'U' || format == 'Z') {
        const int64_t *ends = array->buffers[1];
        *size = ends[at + 1] - ends[at];
        return bytes + ends[at];
    }
    const int32_t *ends = array->buffers[1];
    *size = ends[at + 1] - ends[at];
    return bytes + ends[at];
}

static double number_in(const struct array *array, char format, int64_t at)
{
    const void *values = array->buffers[1];
    switch (format) {
    case 's':
        return ((const int16_t *)values)[at];
    case 'i':
        return ((const int32_t *)values)[at];
    case 'l':
        return (double)((const int64_t *)values)[at];
    case 'f':
        return (double)((const float *)values)[at];
    case 'g':
        return ((const double *)values)[at];
    default:
        return NAN;
    }
}

static int is_text(const char *format)
{
    return (*format == 'u' || *format == 'U') && !format[1];
}

static void count_column(struct counted_column *column, const struct schema *schema, const struct array *array)
{
    char format = schema->dictionary || schema->format[1] ? 0 : *schema->format;
    int64_t size;
    for (int64_t at = array->offset; at < array->offset + array->length; at++) {
        if (!is_filled(array, at))
            continue;
        if (format && is_text(schema->format)) {
            const char *text = bytes_at(array, format, at, &size);
            count_text(column, text, (size_t)size);
        } else {
            column->filled++;
            column->total += fabs(number_in(array, format, at));
        }
    }
}

static void count_shapes(struct counted_layer *counted, const struct schema *schema, const struct array *array)
{
    int64_t size;
    for (int64_t at = array->offset; at < array->offset + array->length; at++)
        if (is_filled(array, at)) {
            const char *wkb = bytes_at(array, *schema->format, at, &size);
            count_wkb(counted, (const unsigned char *)wkb, size);
        }
}

static int has_times(handle definition)
{
    for (int number = 0, count = OGR_FD_GetFieldCount(definition); number < count; number++) {
        int type = OGR_Fld_GetType(OGR_FD_GetFieldDefn(definition, number));
        if (type == DATE || type == TIME || type == DATETIME)
            return 1;
    }
    return 0;
}

/* Whether the columns are those of the layer, in its order, followed by at most one geometry in WKB. */
static int is_expected(const struct schema *schema, const struct counted_layer *counted)
{
    int64_t more = schema->children_count - counted->count;
    for (int number = 0; number < counted->count && more >= 0; number++)
        if (strcmp(schema->children[number]->name, counted->columns[number].name) != 0)
            return 0;
    const char *last = more == 1 ? schema->children[counted->count]->format : "";
    return more == 0 || (more == 1 && (strcmp(last, "z") == 0 || strcmp(last, "Z") == 0));
}

static void forget(struct counted_layer *counted)
{
    for (int number = 0; number < counted->count; number++)
        counted->columns[number] = (struct counted_column){.name = counted->columns[number].name};
    counted->features = counted->geometries = 0;
    counted->has_z = counted->has_m = 0;
}

int has_columns(handle dataset)
{
    handle driver = OGR_L_GetArrowStream ? GDALGetDatasetDriver(dataset) : NULL;
    return driver && strcmp(GDALGetDescription(driver), "FlatGeobuf") == 0;
}

int count_batches(handle layer, struct counted_layer *counted)
{
    static const char *const wishes[] = {"INCLUDE_FID=NO", "MAX_FEATURES_IN_BATCH=4096", NULL};
    struct stream stream = {0};
    struct schema schema = {0};
    struct array batch;
    handle definition = OGR_L_GetLayerDefn(layer);
    if (OGR_GT_HasM(OGR_FD_GetGeomType(definition)) || has_times(definition) || !OGR_L_GetArrowStream(layer, &stream, wishes))
        return 0;
    int is_whole = stream.get_schema(&stream, &schema) == 0 && is_expected(&schema, counted);
    while (is_whole) {
        memset(&batch, 0, sizeof batch);
        is_whole = stream.get_next(&stream, &batch) == 0;
        if (!is_whole || !batch.release)
            break;
        if (!batch.length) { /* some versions of the driver go on with these for ever */
            batch.release(&batch);
            break;
        }
        counted->features += batch.length;
        for (int number = 0; number < counted->count; number++)
            count_column(counted->columns + number, schema.children[number], batch.children[number]);
        if (schema.children_count > counted->count)
            count_shapes(counted, schema.children[counted->count], batch.children[counted->count]);
        batch.release(&batch);
    }
    if (schema.release)
        schema.release(&schema);
    stream.release(&stream);
    if (!is_whole)
        forget(counted);
    return is_whole;
}
