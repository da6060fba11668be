/*
 * Writes tables that a session holds into the sheets of a workbook, with coordinates in columns. Cells are those that a workbook
 * gets from CSV: empty texts and infinite numbers are missing, lines of a text end alike, numbers have 15 digits, and values of
 * types that no cell has are texts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "columns.h"
#include "gdal_messages.h"
#include "loading.h"
#include "progress.h"
#include "question.h"
#include "sheet_writing.h"
#include "waiting.h"

enum { MOST_PLACES = 3 };

/* The columns of a sheet: the coordinates of points, or one of WKT, or none; then those of the table, with their types there. */
struct sheet_columns {
    int places, is_text, count, types[MOST_COLUMNS];
};

/* The number that has the digits of another one up to the fifteenth. */
static double with_15_digits(double number)
{
    char text[32];
    double millionths = rint(number * 1e6);
    if (fabs(millionths) < 1e15 && millionths / 1e6 == number) /* it has no more, as most have not */
        return number;
    snprintf(text, sizeof text, "%.15g", number);
    return CPLStrtod(text, NULL);
}

/* An infinite number, or one that 15 digits make infinite, is missing. */
static void set_number(handle row, int cell, double number)
{
    number = with_15_digits(number);
    if (isfinite(number))
        OGR_F_SetFieldDouble(row, cell, number);
    else
        OGR_F_SetFieldNull(row, cell);
}

static int ends_line(char letter)
{
    return letter == '\r' || letter == '\n';
}

/* Set a text; each of its lines ends with one character, whichever one or two it had. */
static void set_text(handle row, int cell, const char *text)
{
    char *copy = strchr(text, '\r') ? strdup(text) : NULL, *to = copy;
    for (const char *at = text; copy && *at; at++) {
        *to++ = ends_line(*at) ? '\n' : *at;
        at += ends_line(*at) && ends_line(at[1]) && at[1] != *at;
    }
    if (copy)
        *to = 0;
    if (*text)
        OGR_F_SetFieldString(row, cell, copy ? copy : text);
    else
        OGR_F_SetFieldNull(row, cell);
    free(copy);
}

static void set_places(handle row, handle geometry, const struct sheet_columns *columns)
{
    char *text = NULL;
    if (!geometry)
        for (int place = 0; place < columns->places; place++)
            OGR_F_SetFieldNull(row, place);
    else if (columns->is_text) {
        if (OGR_G_ExportToIsoWkt(geometry, &text) == 0)
            OGR_F_SetFieldString(row, 0, text);
        else
            OGR_F_SetFieldNull(row, 0);
        VSIFree(text);
    } else {
        double at[MOST_PLACES] = {OGR_G_GetX(geometry, 0), OGR_G_GetY(geometry, 0), OGR_G_GetZ(geometry, 0)};
        for (int place = 0; place < columns->places; place++)
            set_number(row, place, at[place]);
    }
}

static void set_cell(handle row, int cell, handle feature, int field, int type)
{
    const union value *value = value_of(feature, field, type);
    if (!value)
        OGR_F_SetFieldNull(row, cell);
    else if (type == STRING)
        set_text(row, cell, value->string);
    else if (type == REAL)
        set_number(row, cell, value->real);
    else if (type == INTEGER)
        OGR_F_SetFieldInteger(row, cell, value->integer);
    else if (type == INTEGER64)
        OGR_F_SetFieldInteger64(row, cell, value->integer64);
    else {
        OGR_F_UnsetField(row, cell); /* of what is no time, nothing would be set */
        OGR_F_SetFieldString(row, cell, OGR_F_GetFieldAsString(feature, field));
    }
}

static void make_cells(handle sheet, handle definition, const char *places, struct sheet_columns *columns)
{
    columns->is_text = strcmp(places, "WKT") == 0;
    columns->places = columns->is_text ? 1 : (int)strlen(places);
    columns->count = OGR_FD_GetFieldCount(definition);
    if (columns->is_text)
        create_field(sheet, places, STRING, PLAIN, 0);
    for (const char *place = places; *place && !columns->is_text; place++)
        create_field(sheet, (char[]){*place, 0}, REAL, PLAIN, 0);
    for (int field = 0; field < columns->count; field++) {
        handle told = OGR_FD_GetFieldDefn(definition, field);
        int type = columns->types[field] = OGR_Fld_GetType(told), subtype = OGR_Fld_GetSubType(told);
        int is_kept = type == INTEGER || type == INTEGER64 || type == REAL || type == DATE || type == DATETIME;
        create_field(sheet, OGR_Fld_GetNameRef(told), is_kept ? type : STRING, subtype == BOOLEAN ? subtype : PLAIN, 0);
    }
}

/* Write a table; its features are taken from it. Returns 0 if that fails. */
static int write_sheet(handle workbook, handle table, const char *name, const char *places)
{
    struct sheet_columns columns;
    handle definition = OGR_L_GetLayerDefn(table), feature;
    if (OGR_FD_GetFieldCount(definition) > MOST_COLUMNS || strlen(places) > MOST_PLACES)
        return 0;
    handle sheet = GDALDatasetCreateLayer(workbook, name, NULL, NO_GEOMETRY, NULL);
    int ok = sheet != NULL;
    if (!ok)
        return 0;
    make_cells(sheet, definition, places, &columns);
    handle row = OGR_F_Create(OGR_L_GetLayerDefn(sheet));
    OGR_L_ResetReading(table);
    while (ok && !refused && (feature = next_held(table))) {
        if (columns.places)
            set_places(row, OGR_F_GetGeometryRef(feature), &columns);
        for (int field = 0; field < columns.count; field++)
            set_cell(row, columns.places + field, feature, field, columns.types[field]);
        OGR_F_Destroy(feature);
        OGR_F_SetFID(row, NO_FID);
        ok = OGR_L_CreateFeature(sheet, row) == 0;
        report_feature();
    }
    OGR_F_Destroy(row);
    return ok;
}

/* Write tables into a new workbook of a driver, each given by its name, that of its sheet, and what its coordinates become: the
 * letters of columns for points, "WKT", or nothing, for a table without any. */
void write_sheets(char **at)
{
    const char *target = *at++;
    handle driver = *at ? GDALGetDriverByName(*at++) : NULL;
    handle workbook = driver ? GDALCreate(driver, target, 0, 0, 0, 0, NULL) : NULL;
    int ok = workbook != NULL;
    refused = NULL;
    begin_reading(stayed ? stayed_in : memory);
    for (; ok && at[0] && at[1] && at[2]; at += 3) {
        int index = memory_index(at[0]);
        handle table = stayed && strcmp(at[0], stayed_table) == 0 ? stayed : index < 0 ? NULL : GDALDatasetGetLayer(memory, index);
        ok = table && write_sheet(workbook, table, at[1], at[2]);
    }
    if (workbook)
        GDALClose(workbook);
    end_answer("{", ok && !refused && !has_failed());
}
