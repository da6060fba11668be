/*
 * Opens a file, looks at everything in it and copies it into memory. Copies lack what only the driver knows (styles, feature
 * ids), empty geometries and those whose coordinates are no finite numbers become null, empty parts of others are left out, and
 * columns are identified by position, never by name.
 * A large layer whose driver makes features quickly, and which a copy would not change, is not copied but read a second time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "columns.h"
#include "crs.h"
#include "gdal_messages.h"
#include "geometries.h"
#include "loading.h"
#include "mapped_file.h"
#include "progress.h"
#include "question.h"
#include "waiting.h"
#include "xml_tags.h"

enum { MOST_LAYERS = 1000, LEAST_STAYING = 500 };

handle memory, latest, stayed, stayed_in;
char stayed_table[TABLE_NAME];
static handle source;
static const char *source_name;
static int tables_made;
static int64_t expected; /* the features of the source; -1 if its driver does not know */

/* How the style of a label begins, which alone holds its text in files of this driver. */
static const char LABEL[] = "LABEL(", LABELLING_DRIVER[] = "MapInfo File";

/* The driver that reports measures that stand for none. */
static const char MEASURING_DRIVER[] = "ESRI Shapefile";

/* The driver that need not have read all texts, and then does not know their widths. */
static const char WIDE_DRIVER[] = "GML";

int memory_index(const char *table)
{
    for (int number = 0, count = memory ? GDALDatasetGetLayerCount(memory) : 0; number < count; number++)
        if (strcmp(OGR_L_GetName(GDALDatasetGetLayer(memory, number)), table) == 0)
            return number;
    return -1;
}

/* Whether the source is read by a driver. */
static int is_read_by(const char *name)
{
    handle driver = GDALGetDatasetDriver(source);
    return driver && strcmp(GDALGetDescription(driver), name) == 0;
}

static int is_unlike(handle definition)
{
    int count = OGR_FD_GetFieldCount(definition);
    if (OGR_FD_GetGeomFieldCount(definition) > 1 || count > MOST_COLUMNS)
        return 1;
    for (int number = 0; number < count; number++) {
        handle field = OGR_FD_GetFieldDefn(definition, number);
        int type = OGR_Fld_GetType(field), is_plain = type == INTEGER || type == REAL || type == STRING || type >= BINARY;
        if (!is_plain || type > INTEGER64 || OGR_Fld_GetSubType(field) > FLOAT32)
            return 1;
    }
    return 0;
}

void create_field(handle layer, const char *name, int type, int subtype, int width)
{
    handle field = OGR_Fld_Create(name, type);
    OGR_Fld_SetSubType(field, subtype);
    if (width && type == STRING)
        OGR_Fld_SetWidth(field, width);
    if (OGR_L_CreateField(layer, field, 0) != 0)
        refused = "memory";
    OGR_Fld_Destroy(field);
}

/* The EPSG code of a coordinate system; that of one without a name is found as the driver of GeoPackage does. 0 if unknown. */
static int code_of(handle system)
{
    const char *authority = OSRGetAuthorityName(system, NULL);
    handle identified = authority ? NULL : OSRClone(system);
    if (identified && OSRAutoIdentifyEPSG(identified) == 0)
        authority = OSRGetAuthorityName(system = identified, NULL);
    const char *number = authority && strcmp(authority, "EPSG") == 0 ? OSRGetAuthorityCode(system, NULL) : NULL;
    int code = number ? atoi(number) : 0;
    if (identified)
        OSRDestroySpatialReference(identified);
    return code;
}

/* The coordinate system as the database has it for the code, and what is known of it. */
static handle system_of(handle layer, const char *given, const char **known, int *code)
{
    handle found = OGR_L_GetSpatialRef(layer);
    *known = "none";
    *code = atoi(given);
    if (!*code) {
        if (!found)
            return NULL;
        *known = "other";
        if (!(*code = code_of(found)))
            return found;
    }
    handle named = system_of_code(*code);
    *known = named ? "code" : "other";
    return named ? named : found;
}

static struct column *make_columns(handle definition, handle layer, int count)
{
    struct column *columns = calloc((size_t)count + 1, sizeof *columns);
    if (!columns)
        _exit(1);
    for (int number = 0; number < count; number++) {
        handle field = OGR_FD_GetFieldDefn(definition, number);
        columns[number] = (struct column){.name = OGR_Fld_GetNameRef(field), .type = OGR_Fld_GetType(field),
                                          .subtype = OGR_Fld_GetSubType(field), .fits = FITS_ALL,
                                          .is_id = strcmp(OGR_Fld_GetNameRef(field), "gml_id") == 0};
        if (layer)
            create_field(layer, columns[number].name, columns[number].type, columns[number].subtype,
                         OGR_Fld_GetWidth(field));
    }
    return columns;
}

/* Mend the geometry of a feature; it has none if its coordinates are no finite numbers. Returns what was wrong. */
static int mend(handle feature)
{
    handle geometry = OGR_F_GetGeometryRef(feature);
    int found = !geometry ? 0 : OGR_G_IsEmpty(geometry) ? EMPTY : mend_geometry(geometry);
    if (found & NOWHERE)
        OGR_G_DestroyGeometry(OGR_F_StealGeometry(feature));
    return found;
}

/* Count what was wrong with the geometry of the last feature that was seen; one that is nowhere has no other flaws but empty parts. */
static void examine_wrong(struct shapes *shapes, int wrong)
{
    int told = wrong & NOWHERE ? wrong & (NOWHERE | HOLLOW) : wrong;
    shapes->empty += (wrong & EMPTY) != 0;
    for (int flaw = 0; flaw < FLAWS; flaw++)
        if (told & 1 << flaw && !shapes->flaws[flaw].count++)
            shapes->flaws[flaw].first = shapes->features;
}

/* Look at a feature and mend its geometry. Returns whether a copy in memory differs from it as it was: it has no empty geometries,
 * no numbers that are none, and nulls in place of values that are not even that. */
static int examine_feature(struct shapes *shapes, struct column *columns, int count, handle feature)
{
    shapes->features++;
    if (shapes->lacks_measures && OGR_F_GetGeometryRef(feature))
        leave_out_absent(OGR_F_GetGeometryRef(feature));
    int wrong = mend(feature), is_changed = wrong & ~NOT_MENDED;
    if (wrong)
        examine_wrong(shapes, wrong);
    for (int field = 0; field < count; field++) {
        const union value *value = value_of(feature, field, columns[field].type);
        if (value)
            examine_value(columns + field, feature, field, value, shapes->features);
        else {
            int is_nan = OGR_F_IsFieldSetAndNotNull(feature, field);
            columns[field].begins_empty |= shapes->features == 1;
            columns[field].nans += is_nan;
            is_changed |= is_nan || !OGR_F_IsFieldSet(feature, field);
        }
    }
    handle geometry = wrong & EMPTY ? NULL : OGR_F_GetGeometryRef(feature);
    if (geometry)
        examine_geometry(shapes, geometry);
    if (shapes->may_be_labels) {
        const char *style = OGR_F_GetStyleString(feature);
        shapes->labels += style && strncmp(style, LABEL, strlen(LABEL)) == 0;
    }
    return is_changed;
}

/* Have the first features of a layer wait for its copy in memory. */
static void load_first(handle layer, handle copy, const struct column *columns, int count, int64_t features)
{
    handle feature;
    begin_waiting(copy);
    OGR_L_ResetReading(layer);
    while (features-- && (feature = OGR_L_GetNextFeature(layer))) {
        mend(feature);
        wait_with(feature, columns, count);
    }
}

static int is_of_sheets(void)
{
    return is_read_by("XLSX") || is_read_by("ODS");
}

/* Whether a feature has no values but empty texts. */
static int is_blank(handle feature, const struct column *columns, int count)
{
    for (int field = 0; field < count; field++) {
        const union value *value = value_of(feature, field, columns[field].type);
        if (value && (columns[field].type != STRING || *value->string))
            return 0;
    }
    return 1;
}

/* Look at all features of a layer and have them wait for its copy in memory. The last rows of a sheet are left out if they are
 * blank, as those that only have a format. If the layer may stay where it is, none waits
 * before one that a copy would change. Returns whether it has stayed. */
static int load_features(handle layer, handle copy, struct shapes *shapes, struct column *columns, int count, int stays)
{
    handle feature;
    size_t blank = 0; /* the latest that wait, and were not looked at */
    int may_end_blank = is_of_sheets();
    begin_waiting(copy);
    OGR_L_ResetReading(layer);
    while (!refused && (feature = OGR_L_GetNextFeature(layer))) {
        if (may_end_blank && is_blank(feature, columns, count)) {
            wait_with(feature, columns, count);
            blank++;
            continue;
        }
        for (; blank; blank--)
            examine_feature(shapes, columns, count, waiting_feature(blank));
        int is_changed = examine_feature(shapes, columns, count, feature) && stays;
        if (stays)
            OGR_F_Destroy(feature);
        else
            wait_with(feature, columns, count);
        if (is_changed)
            load_first(layer, copy, columns, count, shapes->features);
        stays &= !is_changed;
        report_feature();
    }
    drop_waiting(blank);
    return stays;
}

/* Whether a layer surely has no features, because its driver reads the whole file for each layer, and the file has none of the
 * tags of this one. */
static int is_surely_empty(handle layer)
{
    static const struct {
        const char *layer, *tag;
    } tags[] = {{"waypoints", "<wpt"}, {"routes", "<rte"}, {"route_points", "<rte"}, {"tracks", "<trk"}, {"track_points", "<trk"}};
    const char *tag = NULL;
    if (!is_read_by("GPX"))
        return 0;
    for (size_t number = 0; number < sizeof tags / sizeof *tags; number++)
        if (strcmp(OGR_L_GetName(layer), tags[number].layer) == 0)
            tag = tags[number].tag;
    struct mapped file = map_file(source_name);
    int is_empty = tag && file.size && !find(file.start, file.start + file.size, tag);
    unmap_file(&file);
    return is_empty;
}

/* ---- a layer that stays in its file ---- */

static int is_plain_field(handle field)
{
    int has_width = OGR_Fld_GetType(field) != STRING && (OGR_Fld_GetWidth(field) || OGR_Fld_GetPrecision(field));
    const char *domain = OGR_Fld_GetDomainName ? OGR_Fld_GetDomainName(field) : NULL;
    const char *alias = OGR_Fld_GetAlternativeNameRef ? OGR_Fld_GetAlternativeNameRef(field) : NULL;
    const char *remark = OGR_Fld_GetComment ? OGR_Fld_GetComment(field) : NULL;
    int is_unique = OGR_Fld_IsUnique ? OGR_Fld_IsUnique(field) : 0;
    int has_words = (domain && *domain) || (alias && *alias) || (remark && *remark);
    return !has_width && !has_words && !is_unique && OGR_Fld_IsNullable(field) && !OGR_Fld_GetDefault(field);
}

/* Whether a layer need not be copied, because reading it once more takes less than a copy: it is the only one of a large
 * file whose driver makes features quickly and says nothing of it that a copy would not have. */
static int may_stay(handle layer, const char *known)
{
    static const char *const drivers[] = {"GPKG", "FlatGeobuf"};
    handle definition = OGR_L_GetLayerDefn(layer);
    int is_quick = 0, is_plain = tables_made == 1 && GDALDatasetGetLayerCount(source) == 1 && expected >= LEAST_STAYING;
    char **metadata = GDALGetMetadata(source, NULL);
    for (size_t number = 0; number < sizeof drivers / sizeof *drivers; number++)
        is_quick |= is_read_by(drivers[number]);
    for (int field = 0; field < OGR_FD_GetFieldCount(definition); field++)
        is_plain &= is_plain_field(OGR_FD_GetFieldDefn(definition, field));
    return is_quick && is_plain && strcmp(known, "other") != 0 && !(metadata && *metadata);
}

void await_table(void)
{
    handle layer = stayed, copy;
    if (!layer)
        return;
    stayed = NULL;
    copy = GDALDatasetGetLayer(memory, memory_index(stayed_table));
    int count = OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(layer));
    struct column *columns = make_columns(OGR_L_GetLayerDefn(layer), NULL, count);
    load_first(layer, copy, columns, count, INT64_MAX);
    forget_columns(columns, count);
}

/* Give texts of a copy that are longer than their column declares the width of the longest, or all, as the driver does if it
 * reads the whole file for the names of columns: some drivers cut what is longer. Returns whether any had to be widened. */
static int set_widths(handle copy, const struct column *columns, int count, int all)
{
    int widened = 0;
    for (int number = 0; number < count; number++) {
        int width = OGR_Fld_GetWidth(OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(copy), number));
        int is_narrow = width && columns[number].longest > (size_t)width;
        if (columns[number].type != STRING || !(is_narrow || (all && !columns[number].is_id)))
            continue;
        handle field = OGR_Fld_Create(columns[number].name, STRING);
        OGR_Fld_SetWidth(field, (int)columns[number].longest);
        OGR_L_AlterFieldDefn(copy, number, field, ALTER_WIDTH);
        OGR_Fld_Destroy(field);
        widened = 1;
    }
    return widened;
}

/* What a layer is called, the table that has become of it, and its system. */
static void tell_layer(handle layer, const char *table, const char *known, int code)
{
    int type = OGR_FD_GetGeomType(OGR_L_GetLayerDefn(layer));
    put("\"name\":");
    put_text(OGR_L_GetName(layer));
    put(",\"geometry_column\":");
    put_text(OGR_L_GetGeometryColumn(layer));
    put(",\"table\":\"%s\",\"has_geometry_column\":%s,\"geometry_type\":%u,\"system\":\"%s\",\"epsg\":%d", table,
        type == NO_GEOMETRY ? "false" : "true", (unsigned)type, known, code);
}

static void tell_columns(const struct column *columns, int count)
{
    put(",\"columns\":[");
    for (int field = 0; field < count; field++) {
        put(field ? "," : "");
        tell_column(columns + field);
    }
    put("]");
}

/* Copy a layer into memory and tell of it. Returns whether it has features. */
static int load_layer(handle layer, const char *told_system)
{
    handle definition = OGR_L_GetLayerDefn(layer);
    int count = OGR_FD_GetFieldCount(definition), geometry_type = OGR_FD_GetGeomType(definition), code;
    const char *known;
    char table[TABLE_NAME];
    if (is_unlike(definition)) {
        refused = "columns";
        return 0;
    }
    handle system = system_of(layer, told_system, &known, &code);
    snprintf(table, sizeof table, "t%d", tables_made++);
    handle copy = GDALDatasetCreateLayer(memory, table, system, geometry_type, NULL);
    if (!copy) {
        refused = "memory";
        return 0;
    }
    GDALSetMetadata(copy, GDALGetMetadata(layer, NULL), NULL);
    struct shapes shapes = NO_SHAPES;
    struct column *columns = make_columns(definition, copy, count);
    shapes.may_be_labels = is_read_by(LABELLING_DRIVER);
    shapes.lacks_measures = is_read_by(MEASURING_DRIVER);
    if (!is_surely_empty(layer) && load_features(layer, copy, &shapes, columns, count, may_stay(layer, known))) {
        stayed = layer;
        strcpy(stayed_table, table);
    }
    if (set_widths(copy, columns, count, is_read_by(WIDE_DRIVER)))
        await_table();
    put("{");
    tell_layer(layer, table, known, code);
    tell_shapes(&shapes);
    tell_columns(columns, count);
    put("}");
    forget_columns(columns, count);
    return shapes.features > 0;
}

/* ---- commands ---- */

void open_source(char **at)
{
    const char *name = source_name = *at++;
    char **drivers = take_list(&at), **open_options = take_list(&at);
    int ok = store_waiting(); /* before what read those that wait is closed */
    if (source)
        GDALClose(source);
    latest = source = GDALOpenEx(name, OF_VECTOR | OF_VERBOSE, (options)drivers, (options)open_options, NULL);
    end_answer("{", ok && source && !has_failed());
}

/* Copy the layers of what is open into memory: all, or those of the names that follow the code of their system and a number.
 * Once so many have features, no further layer is read. */
void load(char **at)
{
    const char *system = *at ? *at++ : "";
    int left = *at ? atoi(*at++) : MOST_LAYERS;
    handle driver = GDALGetDriverByName("Memory");
    driver = driver ? driver : GDALGetDriverByName("MEM");
    if (!memory && driver)
        memory = GDALCreate(driver, "", 0, 0, 0, 0, NULL);
    latest = memory;
    int count = source && memory ? GDALDatasetGetLayerCount(source) : 0;
    refused = !memory ? "memory" : count > MOST_LAYERS ? "layers" : NULL;
    await_table();
    expected = begin_reading(refused || at[0] ? NULL : source); /* counting would look at layers that are not read, too */
    if (expected < 0 && count == 1) /* for each further layer, the file may be read again */
        follow_file(source_name);
    put("{\"layers\":[");
    for (int number = 0; !refused && left > 0 && (at[0] ? at[number] != NULL : number < count); number++) {
        handle layer = at[0] ? GDALDatasetGetLayerByName(source, at[number]) : GDALDatasetGetLayer(source, number);
        put(number ? "," : "");
        if (layer)
            left -= load_layer(layer, system);
        else
            refused = "names";
    }
    int ok = source && !refused && !has_failed();
    if (!ok) {
        take_back_answer();
        put("{\"layers\":[");
    }
    if (stayed) { /* so that it is not closed when another file is opened */
        stayed_in = source;
        source = NULL;
    }
    put("],\"has_too_many\":%s", count > MOST_LAYERS && !at[0] ? "true" : "false");
    end_answer(",", ok);
}

/* Tell a value that a query finds: a text or a number. */
static void tell_found(handle row, int field, int type)
{
    if (!OGR_F_IsFieldSetAndNotNull(row, field))
        put("null");
    else if (type == STRING)
        put_text(OGR_F_GetFieldAsString(row, field));
    else
        put("%.0f", OGR_F_GetFieldAsDouble(row, field));
}

/* Tell all rows that a query finds. Returns whether it could be answered. */
static int tell_rows(handle database, const char *sql)
{
    handle found = GDALDatasetExecuteSQL(database, sql, NULL, NULL), row;
    handle definition = found ? OGR_L_GetLayerDefn(found) : NULL;
    int fields = found ? OGR_FD_GetFieldCount(definition) : 0, rows = 0;
    put("[");
    while (found && (row = OGR_L_GetNextFeature(found))) {
        put(rows++ ? ",[" : "[");
        for (int field = 0; field < fields; field++) {
            put(field ? "," : "");
            tell_found(row, field, OGR_Fld_GetType(OGR_FD_GetFieldDefn(definition, field)));
        }
        put("]");
        OGR_F_Destroy(row);
    }
    put("]");
    if (found)
        GDALDatasetReleaseResultSet(database, found);
    return found && !has_failed();
}

/* What each of some queries finds in the database that is open or was loaded, up to the first that fails. */
void query(char **at)
{
    handle database = source ? source : stayed_in;
    int ok = database != NULL;
    refused = NULL;
    put("{\"found\":[");
    for (int number = 0; ok && at[number]; number++) {
        put(number ? "," : "");
        ok = tell_rows(database, at[number]);
    }
    end_answer("],", ok && !refused);
}
