/*
 * Counts what a result holds, layer by layer, as its driver reads it. The values of large tables are counted only where
 * this is cheap: in formats whose bytes, or whole columns, can be read without making a feature of each row.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "arrow.h"
#include "counting.h"
#include "csv_counts.h"
#include "layer_counts.h"
#include "progress.h"
#include "shapefile.h"
#include "tab.h"
#include "xml_parser.h"

enum { NOT_COUNTED = -1 };

/* If there are too many values to count, do not read them. */
static void ignore_values(handle layer, const struct counted_layer *counted)
{
    const char **names = calloc((size_t)counted->count + 1, sizeof *names);
    for (int field = 0; names && field < counted->count; field++)
        names[field] = counted->columns[field].name;
    if (names)
        OGR_L_SetIgnoredFields(layer, names);
    free(names);
}

static void count_value(struct counted_column *column, handle feature, int field, int type)
{
    const union value *value = OGR_F_GetRawFieldRef(feature, field);
    if (type == STRING) {
        count_text(column, value->string, strlen(value->string));
        return;
    }
    column->filled++;
    column->total += type == REAL        ? fabs(value->real)
                     : type == INTEGER   ? fabs((double)value->integer)
                     : type == INTEGER64 ? fabs((double)value->integer64)
                                         : NAN;
}

/* Make a feature of each row. */
static void count_features(handle layer, handle definition, struct counted_layer *counted, int64_t most_cells)
{
    handle feature;
    int count = counted->count, *types = calloc((size_t)count + 1, sizeof *types);
    if (!types)
        _exit(1);
    for (int field = 0; field < count; field++) {
        handle told = OGR_FD_GetFieldDefn(definition, field);
        types[field] = OGR_Fld_GetSubType(told) == BOOLEAN ? NOT_COUNTED : OGR_Fld_GetType(told);
    }
    if (OGR_L_GetFeatureCount(layer, 0) * count > most_cells)
        ignore_values(layer, counted);
    OGR_L_ResetReading(layer);
    while ((feature = OGR_L_GetNextFeature(layer))) {
        handle geometry = OGR_F_GetGeometryRef(feature);
        if (geometry && !OGR_G_IsEmpty(geometry))
            count_geometry(counted, OGR_G_GetGeometryType(geometry));
        counted->features++;
        counted->counts_values = counted->counts_values && counted->features * count <= most_cells;
        for (int field = 0; counted->counts_values && field < count; field++)
            if (OGR_F_IsFieldSetAndNotNull(feature, field))
                count_value(counted->columns + field, feature, field, types[field]);
        OGR_F_Destroy(feature);
        report_feature();
    }
    free(types);
}

static void count_layer(handle layer, int64_t most_cells, int in_columns)
{
    handle definition = OGR_L_GetLayerDefn(layer);
    struct counted_layer counted = {.count = OGR_FD_GetFieldCount(definition), .counts_values = 1};
    counted.columns = calloc((size_t)counted.count + 1, sizeof *counted.columns);
    if (!counted.columns)
        _exit(1);
    for (int field = 0; field < counted.count; field++)
        counted.columns[field].name = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(definition, field));
    if (!in_columns || !count_batches(layer, &counted))
        count_features(layer, definition, &counted, most_cells);
    tell_counted(OGR_L_GetName(layer), &counted);
    free(counted.columns);
}

/* Count a result without its driver. Returns 0, and has put nothing, if that must read it. */
static int is_counted_by_us(const char *name)
{
    static const struct {
        const char *extension;
        int (*count)(const char *);
    } counters[] = {{".shp", count_shapefile}, {".csv", count_csv},   {".kml", count_kml}, {".gpx", count_gpx},
                  {".gml", count_gml},       {".xlsx", count_xlsx}, {".ods", count_ods}, {".tab", count_tab}};
    const char *extension = strrchr(name, '.');
    for (size_t number = 0; extension && number < sizeof counters / sizeof *counters; number++)
        if (strcmp(extension, counters[number].extension) == 0)
            return counters[number].count(name);
    return 0;
}

int count_result(const char *name, int64_t most_cells, options drivers, options open_options)
{
    if (is_counted_by_us(name))
        return 1;
    handle written = GDALOpenEx(name, OF_VECTOR | OF_VERBOSE, drivers, open_options, NULL);
    begin_reading(written);
    for (int number = 0, layers = written ? GDALDatasetGetLayerCount(written) : 0; number < layers; number++) {
        put(number ? "," : "");
        count_layer(GDALDatasetGetLayer(written, number), most_cells, has_columns(written));
    }
    if (written)
        GDALClose(written);
    return written != NULL;
}
