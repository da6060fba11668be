/* Changes the tables that a session holds: their columns, and points in place of columns. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "columns.h"
#include "editing.h"
#include "gdal_messages.h"
#include "geometries.h"
#include "loading.h"
#include "waiting.h"

enum { MOST_AXES = 3 };

/* A column of a table that is rebuilt: where its values come from, and their type if they are parsed or elevations. */
struct made_column {
    int from, type, subtype, is_parsed, is_elevation;
};

static const struct {
    const char *name;
    int type, subtype;
} types[] = {{"boolean", INTEGER, BOOLEAN}, {"integer", INTEGER64, PLAIN}, {"real", REAL, PLAIN}, {"date", DATE, PLAIN},
             {"datetime", DATETIME, PLAIN}};

/* A column of the given type; any other name leaves it the type that it has. */
static struct made_column made_from(int from, handle definition, const char *type)
{
    if (strcmp(type, "elevation") == 0)
        return (struct made_column){.type = REAL, .is_parsed = 1, .is_elevation = 1};
    if (from < 0 || from >= OGR_FD_GetFieldCount(definition))
        _exit(1);
    handle field = OGR_FD_GetFieldDefn(definition, from);
    struct made_column made = {.from = from, .type = OGR_Fld_GetType(field), .subtype = OGR_Fld_GetSubType(field)};
    for (size_t number = 0; number < sizeof types / sizeof *types; number++)
        if (strcmp(type, types[number].name) == 0) {
            made.is_parsed = made.type != types[number].type || made.subtype != types[number].subtype;
            made.type = types[number].type;
            made.subtype = types[number].subtype;
        }
    return made;
}

static void set_parsed(handle copy, int field, handle feature, struct made_column column)
{
    if (!OGR_F_IsFieldSetAndNotNull(feature, column.from)) {
        OGR_F_SetFieldNull(copy, field);
        return;
    }
    const char *text = OGR_F_GetFieldAsString(feature, column.from);
    if (column.subtype == BOOLEAN && !*text)
        OGR_F_SetFieldNull(copy, field);
    else if (column.subtype == BOOLEAN)
        OGR_F_SetFieldInteger(copy, field, strcmp(text, "true") == 0 || (strchr("TtYy", *text) && !text[1]));
    else if (column.type == INTEGER64)
        OGR_F_SetFieldInteger64(copy, field, strtoll(text, NULL, 10));
    else if (column.type == REAL)
        OGR_F_SetFieldDouble(copy, field, CPLStrtod(text, NULL));
    else {
        OGR_F_UnsetField(copy, field); /* of what is no time, nothing would be set */
        OGR_F_SetFieldString(copy, field, text);
    }
}

/* The third coordinate of a point. */
static void set_elevation(handle copy, int field, handle geometry)
{
    if (geometry && OGR_GT_Flatten(OGR_G_GetGeometryType(geometry)) == POINT && OGR_GT_HasZ(OGR_G_GetGeometryType(geometry)))
        OGR_F_SetFieldDouble(copy, field, OGR_G_GetZ(geometry, 0));
    else
        OGR_F_SetFieldNull(copy, field);
}

/* Whether all columns of a table stay in place with their types. */
static int is_renaming(handle definition, char **at)
{
    int number = 0;
    for (; at[0] && at[1] && at[2]; at += 3, number++)
        if (atoi(at[0]) != number || strcmp(at[2], "same") != 0)
            return 0;
    return number == OGR_FD_GetFieldCount(definition);
}

static int rename_columns(handle layer, char **at)
{
    int ok = 1;
    for (int number = 0; at[0] && at[1] && at[2]; at += 3, number++) {
        handle field = OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(layer), number);
        if (strcmp(OGR_Fld_GetNameRef(field), at[1]) == 0)
            continue;
        handle renamed = OGR_Fld_Create(at[1], OGR_Fld_GetType(field));
        ok &= OGR_L_AlterFieldDefn(layer, number, renamed, ALTER_NAME) == 0;
        OGR_Fld_Destroy(renamed);
    }
    return ok;
}

/* Copy a table with other columns. Returns 0 if that fails. */
static int make_anew(handle old, const char *name, char **at)
{
    handle definition = OGR_L_GetLayerDefn(old), feature;
    handle made = GDALDatasetCreateLayer(memory, name, OGR_L_GetSpatialRef(old), OGR_FD_GetGeomType(definition), NULL);
    struct made_column columns[MOST_COLUMNS];
    int map[MOST_COLUMNS], count = OGR_FD_GetFieldCount(definition), kept = 0, ok = 1;
    if (!made || count > MOST_COLUMNS)
        return 0;
    for (int field = 0; field < count; field++)
        map[field] = -1;
    for (; at[0] && at[1] && at[2] && kept < MOST_COLUMNS; at += 3, kept++) {
        int from = atoi(at[0]);
        struct made_column column = columns[kept] = made_from(from, definition, at[2]);
        if (!column.is_parsed && map[from] >= 0) /* its values move to one place */
            _exit(1);
        if (!column.is_parsed)
            map[from] = kept;
        create_field(made, at[1], column.type, column.subtype,
                     column.is_parsed ? 0 : OGR_Fld_GetWidth(OGR_FD_GetFieldDefn(definition, from)));
    }
    GDALSetMetadata(made, GDALGetMetadata(old, NULL), NULL);
    handle carrier = OGR_F_Create(OGR_L_GetLayerDefn(made));
    OGR_L_ResetReading(old);
    while ((feature = next_held(old))) {
        for (int field = 0; field < kept; field++)
            if (columns[field].is_elevation)
                set_elevation(carrier, field, OGR_F_GetGeometryRef(feature));
            else if (columns[field].is_parsed)
                set_parsed(carrier, field, feature, columns[field]);
        ok &= move_feature(feature, map, count, carrier, made);
    }
    OGR_F_Destroy(carrier);
    return ok;
}

/* Give a table the columns at the given positions, with new names and types. It is copied unless only names change,
 * because a second copy takes as much memory as the first. */
void alter(char **at)
{
    const char *table = at[0], *name = at[1];
    int index = memory_index(table), ok = 0;
    handle layer = index < 0 ? NULL : GDALDatasetGetLayer(memory, index);
    await_table();
    if (layer && strcmp(table, name) == 0 && is_renaming(OGR_L_GetLayerDefn(layer), at + 2))
        ok = rename_columns(layer, at + 2);
    else if (layer && (ok = make_anew(layer, name, at + 2)))
        GDALDatasetDeleteLayer(memory, index);
    end_answer("{", ok && !has_failed());
}

/* The point in the columns `axes` of a feature; none if one of them is empty. */
static handle point_of(handle feature, const int *axes, int count)
{
    double at[MOST_AXES] = {0};
    for (int axis = 0; axis < count; axis++) {
        if (!OGR_F_IsFieldSetAndNotNull(feature, axes[axis]))
            return NULL;
        at[axis] = OGR_F_GetFieldAsDouble(feature, axes[axis]);
    }
    handle point = OGR_G_CreateGeometry(count == MOST_AXES ? POINT_IN_SPACE : POINT);
    if (count == MOST_AXES)
        OGR_G_SetPoint(point, 0, at[0], at[1], at[2]);
    else
        OGR_G_SetPoint_2D(point, 0, at[0], at[1]);
    return point;
}

/* Copy all columns except `axes`, and record the new position of each. */
static void copy_columns(handle definition, handle made, const int *axes, int count, int *map)
{
    for (int field = 0, kept = 0; field < OGR_FD_GetFieldCount(definition) && field < MOST_COLUMNS; field++) {
        handle column = OGR_FD_GetFieldDefn(definition, field);
        map[field] = kept;
        for (int axis = 0; axis < count; axis++)
            if (axes[axis] == field)
                map[field] = -1;
        if (map[field] < 0)
            continue;
        create_field(made, OGR_Fld_GetNameRef(column), OGR_Fld_GetType(column), OGR_Fld_GetSubType(column),
                     OGR_Fld_GetWidth(column));
        kept++;
    }
}

/* Copy a table with points in place of the columns at the given positions: x, y and optionally z. */
void place(char **at)
{
    const char *table = *at++;
    await_table();
    int index = memory_index(table), axes[MOST_AXES], count = 0, map[MOST_COLUMNS];
    handle old = index < 0 ? NULL : GDALDatasetGetLayer(memory, index), feature, point;
    handle definition = old ? OGR_L_GetLayerDefn(old) : NULL;
    struct shapes shapes = NO_SHAPES;
    for (; *at && count < MOST_AXES; at++, count++) {
        axes[count] = atoi(*at);
        if (axes[count] < 0 || !old || axes[count] >= OGR_FD_GetFieldCount(definition))
            _exit(1);
    }
    handle made = count < 2 ? NULL
                            : GDALDatasetCreateLayer(memory, table, NULL, count == MOST_AXES ? POINT_IN_SPACE : POINT, NULL);
    int ok = made != NULL;
    if (made) {
        copy_columns(definition, made, axes, count, map);
        OGR_L_ResetReading(old);
        while ((feature = next_held(old))) {
            handle copy = OGR_F_Create(OGR_L_GetLayerDefn(made));
            OGR_F_SetFromWithMap(copy, feature, 1, map);
            shapes.features++;
            if ((point = point_of(feature, axes, count))) {
                examine_geometry(&shapes, point);
                OGR_F_SetGeometryDirectly(copy, point);
            }
            ok &= OGR_L_CreateFeature(made, copy) == 0;
            OGR_F_Destroy(copy);
            OGR_F_Destroy(feature);
        }
        GDALDatasetDeleteLayer(memory, index);
    }
    put("{\"layer\":{\"table\":");
    put_text(table);
    tell_shapes(&shapes);
    end_answer("},", ok && !has_failed());
}
