/*
 * A conversation with one run of ogr2ogr: it opens a file, copies it into memory, reports its content, waits, converts
 * what it holds as often as required, rereads what it wrote, and ends. A file is therefore parsed once, and one process
 * does what would otherwise take one process per step.
 *
 * `ogr2ogr --session QUESTIONS ANSWERS` reads commands from one pipe and writes answers to the other. Both consist of a
 * length of four bytes and a body. A command is a sequence of zero-terminated texts, the first of which is its name; lists
 * in it end with an empty text. An answer is JSON. A command that takes long reports which share of it is done, by lengths
 * without a body that no answer has. Copies lack what only the driver knows (styles, feature ids), empty
 * geometries become null, and columns are identified by position, never by name. A large layer whose driver makes features
 * quickly, and which a copy would not change, is not copied but read a second time.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "counts.h"
#include "gdal.h"
#include "progress.h"
#include "separated.h"
#include "restyle.h"
#include "session.h"
#include "straying.h"
#include "systems.h"
#include "tally.h"
#include "workbook.h"

enum { PATIENCE_MS = 180000, MOST_BYTES = 16 << 20, MOST_MESSAGES = 1 << 16, DBF_BYTES = 254, DISTINCT = 3, TYPES = 32 };
enum { MOST_COLUMNS = 2000, MOST_LAYERS = 1000, BLOB_HEAD = 8, ENVELOPE = 32, MOST_AXES = 3, LEAST_WKB = 18 };
enum { TABLE_NAME = 32, LEAST_STAYING = 500 };
enum { FITS_BOOLEAN = 1, FITS_INTEGER = 2, FITS_REAL = 4, FITS_DATE = 8, FITS_DATETIME = 16, FITS_ALL = 31 };

/* What is open, what is held, and the more recent of the two, which is converted. */
static handle source, memory, latest;
/* A layer of the source that is read again when it is converted, in place of a copy in memory; its name in commands. */
static handle stayed, stayed_in;
static char stayed_table[TABLE_NAME];
static int questions, answers, tables_made;
static char messages[MOST_MESSAGES];
static size_t messages_size;
static int failures;

/* ---- what GDAL says ---- */

static void hear(int kind, int number, const char *text)
{
    if (kind == DEBUG || kind == 0)
        return;
    failures += kind >= FAILURE;
    size_t room = sizeof messages - messages_size;
    int size = snprintf(messages + messages_size, room, kind >= FAILURE ? "ERROR %d: %s\n" : "Warning %d: %s\n", number, text);
    if (size > 0)
        messages_size += (size_t)size < room ? (size_t)size : room - 1;
    dprintf(STDERR_FILENO, kind >= FAILURE ? "ERROR %d: %s\n" : "Warning %d: %s\n", number, text);
}

/* ---- how far a command is ---- */

enum { REPORT_MS = 250, REPORTS_AT_ONE_PACE = 1000, PERMILLE = 1000 };
static const uint32_t IS_REPORT = 1u << 31;
static int reports;
static int64_t features_done, features_in_all, report_at_ms;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Say which share is done, from 0 to 1, unless this was said, or the command began, a moment ago. The moment doubles with
 * every thousand reports, because the service hears only so many from one run. */
static void report(double share)
{
    int64_t now = now_ms();
    if (now < report_at_ms)
        return;
    report_at_ms = now + ((int64_t)REPORT_MS << reports++ / REPORTS_AT_ONE_PACE);
    uint32_t told = IS_REPORT | (uint32_t)(PERMILLE * fmax(0, fmin(share, 1)));
    if (write(answers, &told, sizeof told) < 0)
        report_at_ms = INT64_MAX;
}

void report_feature(void)
{
    features_done++;
    if (features_in_all > 0)
        report((double)features_done / (double)features_in_all);
}

static int report_share(double share, const char *text, void *nothing)
{
    (void)text, (void)nothing;
    report(share);
    return 1;
}

/* How many features a dataset has; -1 if its driver would have to read them. Some drivers read a whole layer here, and
 * only once, so that what they say of it must be heard. */
static int64_t known_features(handle dataset)
{
    int64_t known = 0;
    for (int number = 0, count = dataset ? GDALDatasetGetLayerCount(dataset) : 0; number < count && known >= 0; number++) {
        handle layer = GDALDatasetGetLayer(dataset, number);
        int64_t found = OGR_L_TestCapability(layer, "FastFeatureCount") ? OGR_L_GetFeatureCount(layer, 0) : -1;
        known = found < 0 ? -1 : known + found;
    }
    return known;
}

void begin_reading(handle dataset)
{
    features_done = 0;
    features_in_all = known_features(dataset);
}

/* ---- what is seen in columns ---- */

struct column {
    const char *name;
    int type, subtype, fits, distinct, begins_empty;
    int64_t filled, over, empty, geometries, blanks, leading, returns, controls, jsons, markup, formulas, zeros, infinite, tiny, older, old, early, fractions, zoned, offsets, unsteady, at_32, beyond_32, beyond_53, inexact_whole, inexact;
    size_t longest;
    double total;
    char *values[DISTINCT], *prefix;
};

static const char *digits(const char *at, int most)
{
    const char *start = at;
    while (isdigit((unsigned char)*at) && at - start < most)
        at++;
    return at;
}

/* Numbers without leading zeros, with at most 18 digits before the point. */
static int fits_real(const char *text)
{
    text += *text == '-';
    const char *at = *text == '0' ? text + 1 : digits(text, 18), *next;
    if (at == text)
        return 0;
    if (*at == '.') {
        if ((next = digits(at + 1, 1 << 20)) == at + 1)
            return 0;
        at = next;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '-' || at[1] == '+' ? 2 : 1;
        if ((next = digits(at, 1 << 20)) == at)
            return 0;
        at = next;
    }
    return !*at;
}

static int fits_integer(const char *text, size_t size)
{
    const char *first = text + (*text == '-');
    int is_plain = *first == '0' ? size == 1 : *first != 0;
    return is_plain && size <= 18 && first[strspn(first, "0123456789")] == 0 && *first;
}

/* In `pattern`, 0 matches a digit up to the one that follows it; other characters match themselves. */
static int looks_like(const char *text, const char *pattern)
{
    for (; *pattern; pattern++, text++)
        if (isdigit((unsigned char)*pattern) ? !isdigit((unsigned char)*text) || *text > *pattern : *text != *pattern)
            return 0;
    return 1;
}

static int fits_date(const char *text, size_t size)
{
    return size >= 10 && looks_like(text, "9999-99-99") && is_in_calendar(text);
}

static int fits_datetime(const char *text, size_t size)
{
    if (size < 19 || !fits_date(text, size) || !looks_like(text + 10, "T29:59:59") || (text[11] == '2' && text[12] > '3'))
        return 0;
    const char *at = text + 19;
    if (*at == '.') {
        const char *end = digits(at + 1, 1 << 20);
        if (end == at + 1)
            return 0;
        at = end;
    }
    at += *at == 'Z';
    return !*at;
}

static void see_looks(struct column *column, const char *text, size_t size)
{
    int fits = column->fits;
    if (fits & FITS_BOOLEAN && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        fits &= ~FITS_BOOLEAN;
    if (fits & FITS_INTEGER && !fits_integer(text, size))
        fits &= ~FITS_INTEGER;
    if (fits & FITS_REAL && !fits_real(text))
        fits &= ~FITS_REAL;
    if (fits & FITS_DATE && !(size == 10 && fits_date(text, size)))
        fits &= ~FITS_DATE;
    if (fits & FITS_DATETIME && !fits_datetime(text, size))
        fits &= ~FITS_DATETIME;
    column->fits = fits;
}

/* Keep the first few distinct values, and the common prefix of all. */
static void see_value(struct column *column, const char *text)
{
    int number = 0, most = column->distinct < DISTINCT ? column->distinct : DISTINCT;
    if (!column->prefix)
        column->prefix = strdup(text);
    else if (*column->prefix) {
        char *at = column->prefix;
        while (*at && *at == *text)
            at++, text++;
        text -= at - column->prefix;
        while ((*at & 0xc0) == 0x80) /* within a character */
            at--;
        *at = 0;
    }
    if (column->distinct > DISTINCT)
        return;
    while (number < most && strcmp(column->values[number], text) != 0)
        number++;
    if (number < most)
        return;
    if (column->distinct++ < DISTINCT)
        column->values[number] = strdup(text);
}

static void see_integer(struct column *column, int64_t value)
{
    column->total += fabs((double)value);
    column->at_32 += value == INT32_MIN || value == INT32_MAX;
    column->beyond_32 += value < INT32_MIN || value > INT32_MAX;
    column->beyond_53 += value < -(1LL << 53) || value > 1LL << 53;
    column->inexact_whole += value < -99999999999999999 || value > 999999999999999999;
}

static void see_real(struct column *column, double value)
{
    double size = fabs(value);
    column->total += size;
    column->infinite += isinf(value) != 0;
    column->tiny += size != 0 && size < 5e-7;
    column->inexact += size != 0 && !isinf(value) && (size >= 1e23 || size < 5e-7);
}

/* What a byte may be part of. Most bytes are part of nothing here, so that one look at each is enough. */
enum { BEYOND_ASCII = 1, CONTROL = 2, RETURN = 4, NO_CHARACTER = 8, BLANK = 16, GEOMETRY = 32 };
static const unsigned char KINDS_OF_BYTES[256] = {
    [1 ... 8] = CONTROL, ['\t'] = BLANK, ['\n'] = BLANK, ['\v'] = CONTROL | BLANK, ['\f'] = CONTROL | BLANK,
    ['\r'] = RETURN | BLANK, [14 ... 31] = CONTROL, [' '] = BLANK, ['0'] = GEOMETRY, ['C'] = GEOMETRY, ['G'] = GEOMETRY,
    ['L'] = GEOMETRY, ['M'] = GEOMETRY, ['P'] = GEOMETRY, ['S'] = GEOMETRY, ['T'] = GEOMETRY, ['c'] = GEOMETRY,
    ['g'] = GEOMETRY, ['l'] = GEOMETRY, ['m'] = GEOMETRY, ['p'] = GEOMETRY, ['s'] = GEOMETRY, ['t'] = GEOMETRY,
    ['{'] = GEOMETRY, [0x80 ... 0xee] = BEYOND_ASCII, [0xef] = BEYOND_ASCII | NO_CHARACTER, [0xf0 ... 0xff] = BEYOND_ASCII,
};

static unsigned kinds_of(const char *text, size_t size)
{
    unsigned kinds = 0;
    for (size_t at = 0; at < size; at++)
        kinds |= KINDS_OF_BYTES[(unsigned char)text[at]];
    return kinds;
}

/* Whether a text begins like a geometry in WKT, WKB or GeoJSON; some street names do, too. */
static int may_be_geometry(const char *text)
{
    static const char *const words[] = {"srid=", "multi", "point", "linestring", "polygon", "curve", "surface", "tin",
                                        "geometrycollection", "circularstring", "compoundcurve", "polyhedralsurface",
                                        "triangle", "{"};
    while (KINDS_OF_BYTES[(unsigned char)*text] & BLANK)
        text++;
    if (!(KINDS_OF_BYTES[(unsigned char)*text] & GEOMETRY))
        return 0;
    if (*text == '0' && strlen(text) >= LEAST_WKB) /* each byte is two digits, the first of which says the order */
        return text[1] == '0' || text[1] == '1';
    for (size_t number = 0; number < sizeof words / sizeof *words; number++)
        if (tolower((unsigned char)*text) == *words[number] && strncasecmp(text, words[number], strlen(words[number])) == 0)
            return 1;
    return 0;
}

/* Whether a text has U+FFFE or U+FFFF. */
static int has_no_character(const char *text)
{
    return strstr(text, "\xef\xbf\xbe") || strstr(text, "\xef\xbf\xbf");
}

/* What some format changes in a text, or mistakes it for. */
static void see_characters(struct column *column, const char *text, size_t size, unsigned kinds)
{
    column->controls += kinds & CONTROL || (kinds & NO_CHARACTER && has_no_character(text));
    column->returns += (kinds & RETURN) != 0;
    column->leading += *text == ' ';
    column->jsons += size > 1 && ((*text == '{' && text[size - 1] == '}') || (*text == '[' && text[size - 1] == ']'));
    const char *bare = text + strspn(text, "\t\n\r ");
    column->markup += *bare == '<';
    column->formulas += strncmp(bare, "of:=", 4) == 0;
}

static void see_text(struct column *column, const char *text)
{
    size_t size = strlen(text);
    unsigned kinds = kinds_of(text, size);
    if (kinds & BEYOND_ASCII && !CPLIsUTF8(text, (int)size))
        refused = "encoding";
    column->longest = size > column->longest ? size : column->longest;
    column->over += size > DBF_BYTES;
    column->empty += size == 0;
    column->geometries += may_be_geometry(text);
    see_characters(column, text, size, kinds);
    column->blanks += size && text[size - 1] == ' ';
    column->zeros += size > 1 && *text == '0' && text[strspn(text, "0123456789")] == 0;
    if (column->fits)
        see_looks(column, text, size);
    if (column->fits & FITS_INTEGER)
        see_integer(column, strtoll(text, NULL, 10));
    else if (column->fits & FITS_REAL)
        see_real(column, CPLStrtod(text, NULL));
    see_value(column, text);
}

/* Whether a date that begins with year and month is one that spreadsheets cannot count from their first day. */
static int is_before_march_1900(const char *text)
{
    int year = strncmp(text, "1900", 4);
    return year < 0 || (year == 0 && text[4] && text[5] == '0' && text[6] < '3');
}

static void see_date(struct column *column, const char *text)
{
    column->older += *text == '0';
    column->old += is_before_march_1900(text);
}

/* See a time as the text that a GeoPackage stores of it, which is to be the same time when it is read. */
static void see_moment(struct column *column, const struct moment *moment)
{
    enum { NO_ZONE = 0, UTC = 100, MOST_QUARTERS = 14 * 4, MINUTES = 15, HOUR = 60 };
    int east = moment->zone == NO_ZONE ? 0 : moment->zone - UTC, offset = abs(east) * MINUTES;
    char text[64], seconds[32], zone[16] = "";
    snprintf(seconds, sizeof seconds, "%06.3f", (double)moment->second);
    if (east)
        snprintf(zone, sizeof zone, "%c%02d:%02d", east < 0 ? '-' : '+', offset / HOUR, offset % HOUR);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%s%s", moment->year, moment->month, moment->day, moment->hour,
             moment->minute, seconds, moment->zone == UTC ? "Z" : zone);
    column->early += strcmp(text, "1970-01-01T00:00:00.999Z") <= 0;
    column->old += is_before_march_1900(text);
    column->fractions += strcmp(seconds + 2, ".000") != 0;
    column->zoned += moment->zone != NO_ZONE;
    column->offsets += east != 0;
    column->unsteady += moment->year < 0 || moment->year > 9999 || moment->month < 1 || moment->month > 12 ||
                        moment->day < 1 || moment->day > 31 || moment->hour > 23 || moment->minute > 59 ||
                        moment->second < 0 || !(CPLStrtod(seconds, NULL) < 60) ||
                        (float)CPLStrtod(seconds, NULL) != moment->second || abs(east) > MOST_QUARTERS;
}

static void see(struct column *column, handle feature, int field, const union value *value)
{
    column->filled++;
    if (column->type == STRING) {
        see_text(column, value->string);
        if (column->fits & FITS_DATE)
            see_date(column, value->string);
        return;
    }
    if (column->type == DATE)
        see_date(column, OGR_F_GetFieldAsString(feature, field));
    if (column->type == DATETIME)
        see_moment(column, &value->moment);
    if (column->type == REAL)
        see_real(column, value->real);
    else if (column->type == INTEGER64 || (column->type == INTEGER && column->subtype != BOOLEAN))
        see_integer(column, column->type == INTEGER ? value->integer : value->integer64);
    if (column->type != BINARY && (column->distinct <= DISTINCT || (column->prefix && *column->prefix)))
        see_value(column, OGR_F_GetFieldAsString(feature, field));
}

static const char *type_name(const struct column *column)
{
    switch (column->type) {
    case INTEGER:
    case INTEGER64:
        return column->subtype == BOOLEAN ? "boolean" : "integer";
    case REAL:
        return "real";
    case DATE:
        return "date";
    case DATETIME:
        return "datetime";
    case TIME:
        return "time";
    case BINARY:
        return "binary";
    default:
        return "text";
    }
}

static void tell_column(const struct column *column)
{
    static const char *const kinds[] = {"boolean", "integer", "real", "date", "datetime"};
    int is_whole = column->type == INTEGER || column->type == INTEGER64;
    int is_number = column->type == REAL || (is_whole && column->subtype != BOOLEAN);
    if (column->type == STRING) {
        is_whole = column->fits & FITS_INTEGER;
        is_number = column->filled && column->fits & (FITS_INTEGER | FITS_REAL);
    }
    put("{\"name\":");
    put_text(column->name);
    put(",\"type\":\"%s\",\"filled\":%lld,\"longest_bytes\":%zu,\"over_dbf_limit\":%lld,\"empty\":%lld,"
        "\"trailing_blanks\":%lld,\"leading_blanks\":%lld,\"carriage_returns\":%lld,\"control\":%lld,\"like_json\":%lld,",
        type_name(column), (long long)column->filled, column->longest, (long long)column->over,
        (long long)column->empty, (long long)column->blanks, (long long)column->leading, (long long)column->returns,
        (long long)column->controls, (long long)column->jsons);
    put("\"like_markup\":%lld,\"like_formulas\":%lld,\"leading_zeros\":%lld,\"infinite\":%lld,\"tiny\":%lld,"
        "\"at_32_bits\":%lld,\"beyond_32_bits\":%lld,\"beyond_53_bits\":%lld,\"before_1000\":%lld,\"before_march_1900\":%lld,\"until_1970\":%lld,\"fractions\":%lld,\"zoned\":%lld,\"offsets\":%lld,\"unsteady\":%lld,\"inexact_in_dbf\":%lld,\"like_geometries\":%lld,\"begins_empty\":%s,\"total\":",
        (long long)column->markup, (long long)column->formulas,
        (long long)column->zeros, (long long)column->infinite, (long long)column->tiny, (long long)column->at_32, (long long)column->beyond_32,
        (long long)column->beyond_53, (long long)column->older, (long long)column->old, (long long)column->early,
        (long long)column->fractions, (long long)column->zoned, (long long)column->offsets, (long long)column->unsteady,
        (long long)(is_whole ? column->inexact_whole : column->inexact), (long long)column->geometries,
        column->begins_empty ? "true" : "false");
    put_number(is_number ? column->total : NAN);
    put(",\"fits\":[");
    for (int kind = 0, told = 0; kind < 5; kind++)
        if (column->filled && column->type == STRING && column->fits & 1 << kind)
            put("%s\"%s\"", told++ ? "," : "", kinds[kind]);
    put("],\"prefix\":");
    put_text(column->prefix && strlen(column->prefix) < 512 ? column->prefix : "");
    put(",\"values\":");
    if (column->distinct > DISTINCT || (column->type == BINARY && column->filled))
        put("null");
    else {
        put("[");
        for (int number = 0; number < column->distinct; number++) {
            put(number ? "," : "");
            put_text(column->values[number]);
        }
        put("]");
    }
    put("}");
}

static void forget_columns(struct column *columns, int count)
{
    for (int number = 0; number < count; number++) {
        for (int value = 0; value < DISTINCT; value++)
            free(columns[number].values[value]);
        free(columns[number].prefix);
    }
    free(columns);
}

/* ---- what is seen of geometries ---- */

/* Longitudes may exceed 180 by another turn, so that a geometry can cross the date line in one piece. */
static const double FARTHEST = 540.0, POLE = 90.001;

/* How the style of a label begins, which alone holds its text in files of this driver. */
static const char LABEL[] = "LABEL(", LABELLING_DRIVER[] = "MapInfo File";

struct shapes {
    int64_t features, filled, flat, sloping, unmeasured, first_beyond, labels, counts[TYPES];
    int has_z, has_m, may_be_labels;
    size_t longest;
    double west, east, south, north;
};

/* How many areas of a geometry have points with different elevations. */
static int count_sloping(handle geometry, int flat)
{
    double box[6];
    int found = 0;
    if (flat == MULTI_AREA)
        for (int number = 0, count = OGR_G_GetGeometryCount(geometry); number < count; number++)
            found += count_sloping(OGR_G_GetGeometryRef(geometry, number), AREA);
    if (flat != AREA)
        return found;
    OGR_G_GetEnvelope3D(geometry, box);
    return box[4] != box[5];
}

static void see_geometry(struct shapes *shapes, handle geometry)
{
    int type = OGR_G_GetGeometryType(geometry), flat = OGR_GT_Flatten(type);
    double box[4];
    shapes->filled++;
    shapes->counts[flat > 0 && flat < TYPES ? flat : 0]++;
    shapes->has_z |= OGR_GT_HasZ(type);
    shapes->flat += !OGR_GT_HasZ(type);
    shapes->sloping += OGR_GT_HasZ(type) ? count_sloping(geometry, flat) : 0;
    shapes->has_m |= OGR_GT_HasM(type);
    shapes->unmeasured += !OGR_GT_HasM(type);
    OGR_G_GetEnvelope(geometry, box);
    if (!shapes->first_beyond && (fabs(box[0]) > FARTHEST || fabs(box[1]) > FARTHEST || box[2] < -POLE || box[3] > POLE))
        shapes->first_beyond = shapes->features;
    shapes->west = fmin(shapes->west, box[0]);
    shapes->east = fmax(shapes->east, box[1]);
    shapes->south = fmin(shapes->south, box[2]);
    shapes->north = fmax(shapes->north, box[3]);
    size_t envelope = flat == POINT ? 0 : OGR_GT_HasZ(type) ? ENVELOPE + ENVELOPE / 2 : ENVELOPE;
    size_t size = BLOB_HEAD + envelope + (size_t)OGR_G_WkbSize(geometry);
    shapes->longest = size > shapes->longest ? size : shapes->longest;
}

static void tell_shapes(const struct shapes *shapes)
{
    put(",\"features\":%lld,\"geometries\":%lld,\"has_z\":%s,\"has_m\":%s,\"longest_geometry_bytes\":%zu,"
        "\"flat_geometries\":%lld,\"sloping_areas\":%lld,\"unmeasured_geometries\":%lld,\"first_beyond_degrees\":%lld,\"labels\":%lld,\"codes\":{",
        (long long)shapes->features, (long long)shapes->filled, shapes->has_z ? "true" : "false",
        shapes->has_m ? "true" : "false", shapes->longest, (long long)shapes->flat, (long long)shapes->sloping, (long long)shapes->unmeasured,
        (long long)shapes->first_beyond, (long long)shapes->labels);
    for (int type = 0, told = 0; type < TYPES; type++)
        if (shapes->counts[type])
            put("%s\"%d\":%lld", told++ ? "," : "", type, (long long)shapes->counts[type]);
    put("},\"extent\":");
    if (shapes->filled && isfinite(shapes->west + shapes->south + shapes->east + shapes->north))
        put("[%.17g,%.17g,%.17g,%.17g]", shapes->west, shapes->south, shapes->east, shapes->north);
    else
        put("null");
}

/* ---- loading ---- */

static int memory_index(const char *table)
{
    for (int number = 0, count = memory ? GDALDatasetGetLayerCount(memory) : 0; number < count; number++)
        if (strcmp(OGR_L_GetName(GDALDatasetGetLayer(memory, number)), table) == 0)
            return number;
    return -1;
}

/* Whether a field of a feature has a value; a number that is none counts as missing. */
static int is_value(handle feature, int field, int type)
{
    return OGR_F_IsFieldSetAndNotNull(feature, field) && !(type == REAL && isnan(OGR_F_GetRawFieldRef(feature, field)->real));
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

static void create_field(handle layer, const char *name, int type, int subtype, int width)
{
    handle field = OGR_Fld_Create(name, type);
    OGR_Fld_SetSubType(field, subtype);
    if (width && type == STRING)
        OGR_Fld_SetWidth(field, width);
    if (OGR_L_CreateField(layer, field, 0) != 0)
        refused = "memory";
    OGR_Fld_Destroy(field);
}

/* The coordinate system as the database has it for the code, and what is known of it. */
static handle system_of(handle layer, const char *given, const char **known, int *code)
{
    handle found = OGR_L_GetSpatialRef(layer), named;
    *known = "none";
    *code = atoi(given);
    if (!*code) {
        const char *authority = found ? OSRGetAuthorityName(found, NULL) : NULL;
        const char *number = found ? OSRGetAuthorityCode(found, NULL) : NULL;
        if (!found)
            return NULL;
        *known = "other";
        if (!authority || strcmp(authority, "EPSG") != 0 || !number || !(*code = atoi(number)))
            return found;
    }
    named = OSRNewSpatialReference(NULL);
    if (OSRImportFromEPSG(named, *code) != 0) {
        *known = "other";
        return found;
    }
    OSRSetAxisMappingStrategy(named, TRADITIONAL_ORDER);
    *known = "code";
    return named;
}

static struct column *make_columns(handle definition, handle layer, int count)
{
    struct column *columns = calloc((size_t)count + 1, sizeof *columns);
    if (!columns)
        _exit(1);
    for (int number = 0; number < count; number++) {
        handle field = OGR_FD_GetFieldDefn(definition, number);
        columns[number] = (struct column){.name = OGR_Fld_GetNameRef(field), .type = OGR_Fld_GetType(field),
                                          .subtype = OGR_Fld_GetSubType(field), .fits = FITS_ALL};
        if (layer)
            create_field(layer, columns[number].name, columns[number].type, columns[number].subtype,
                         OGR_Fld_GetWidth(field));
    }
    return columns;
}

/* Look at a feature. */
static void see_feature(struct shapes *shapes, struct column *columns, int count, handle feature)
{
    handle geometry = OGR_F_GetGeometryRef(feature);
    shapes->features++;
    for (int field = 0; field < count; field++)
        if (is_value(feature, field, columns[field].type))
            see(columns + field, feature, field, OGR_F_GetRawFieldRef(feature, field));
        else
            columns[field].begins_empty |= shapes->features == 1;
    if (geometry && !OGR_G_IsEmpty(geometry))
        see_geometry(shapes, geometry);
    if (shapes->may_be_labels) {
        const char *style = OGR_F_GetStyleString(feature);
        shapes->labels += style && strncmp(style, LABEL, strlen(LABEL)) == 0;
    }
}

/* Whether a copy in memory would differ from a feature: it has no empty geometries, no numbers that are none, and nulls in
 * place of values that are not even that. */
static int is_changed_by_copying(handle feature, const struct column *columns, int count)
{
    handle geometry = OGR_F_GetGeometryRef(feature);
    int is_changed = geometry && OGR_G_IsEmpty(geometry);
    for (int field = 0; field < count && !is_changed; field++)
        is_changed = !OGR_F_IsFieldSet(feature, field) || (columns[field].type == REAL && OGR_F_IsFieldSetAndNotNull(feature, field) &&
                                                           !is_value(feature, field, REAL));
    return is_changed;
}

/* Put a feature into a layer. Its values pass through `carrier`, a feature of the layer, which leaves those of the feature
 * before in their place to be freed: the layer copies what it is given, and one copy is enough. */
static void load_feature(handle layer, handle from, handle carrier, const struct column *columns, int count)
{
    handle geometry = OGR_F_StealGeometry(from);
    if (geometry && OGR_G_IsEmpty(geometry)) {
        OGR_G_DestroyGeometry(geometry);
        geometry = NULL;
    }
    for (int field = 0; field < count; field++)
        if (is_value(from, field, columns[field].type)) {
            union value *value = OGR_F_GetRawFieldRef(from, field), *place = OGR_F_GetRawFieldRef(carrier, field), old = *place;
            *place = *value;
            *value = old;
        } else
            OGR_F_SetFieldNull(carrier, field);
    OGR_F_SetGeometryDirectly(carrier, geometry);
    OGR_F_SetFID(carrier, NO_FID);
    if (OGR_L_CreateFeature(layer, carrier) != 0)
        refused = "memory";
}

/* Put the first features of a layer into its copy in memory. */
static void load_first(handle layer, handle copy, const struct column *columns, int count, int64_t features)
{
    handle feature, carrier = OGR_F_Create(OGR_L_GetLayerDefn(copy));
    OGR_L_ResetReading(layer);
    while (features-- && !refused && (feature = OGR_L_GetNextFeature(layer))) {
        load_feature(copy, feature, carrier, columns, count);
        OGR_F_Destroy(feature);
    }
    OGR_F_Destroy(carrier);
}

/* Look at all features of a layer and put them into its copy in memory. If the layer may stay where it is, copy nothing
 * before a feature that a copy would change. Returns whether it has stayed. */
static int load_features(handle layer, handle copy, struct shapes *shapes, struct column *columns, int count, int stays)
{
    handle feature, carrier = OGR_F_Create(OGR_L_GetLayerDefn(copy));
    OGR_L_ResetReading(layer);
    while (!refused && (feature = OGR_L_GetNextFeature(layer))) {
        int is_changed = stays && is_changed_by_copying(feature, columns, count);
        see_feature(shapes, columns, count, feature);
        if (!stays)
            load_feature(copy, feature, carrier, columns, count);
        OGR_F_Destroy(feature);
        if (is_changed)
            load_first(layer, copy, columns, count, shapes->features);
        stays &= !is_changed;
        report_feature();
    }
    OGR_F_Destroy(carrier);
    return stays;
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
    handle definition = OGR_L_GetLayerDefn(layer), driver = GDALGetDatasetDriver(source);
    int is_quick = 0, is_plain = tables_made == 1 && GDALDatasetGetLayerCount(source) == 1 && features_in_all >= LEAST_STAYING;
    char **metadata = GDALGetMetadata(source, NULL);
    for (size_t number = 0; number < sizeof drivers / sizeof *drivers; number++)
        is_quick |= strcmp(GDALGetDescription(driver), drivers[number]) == 0;
    for (int field = 0; field < OGR_FD_GetFieldCount(definition); field++)
        is_plain &= is_plain_field(OGR_FD_GetFieldDefn(definition, field));
    return is_quick && is_plain && strcmp(known, "other") != 0 && !(metadata && *metadata);
}

/* Copy the layer that has stayed in its file, if there is one. */
static void bring_in(void)
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

static void load_layer(handle layer, const char *told_system)
{
    handle definition = OGR_L_GetLayerDefn(layer);
    int count = OGR_FD_GetFieldCount(definition), geometry_type = OGR_FD_GetGeomType(definition), code;
    const char *known;
    char table[TABLE_NAME];
    if (is_unlike(definition)) {
        refused = "columns";
        return;
    }
    handle system = system_of(layer, told_system, &known, &code);
    snprintf(table, sizeof table, "t%d", tables_made++);
    handle copy = GDALDatasetCreateLayer(memory, table, system, geometry_type, NULL);
    if (!copy) {
        refused = "memory";
        return;
    }
    GDALSetMetadata(copy, GDALGetMetadata(layer, NULL), NULL);
    struct shapes shapes = {.west = INFINITY, .south = INFINITY, .east = -INFINITY, .north = -INFINITY};
    struct column *columns = make_columns(definition, copy, count);
    handle driver = GDALGetDatasetDriver(source);
    shapes.may_be_labels = driver && strcmp(GDALGetDescription(driver), LABELLING_DRIVER) == 0;
    if (load_features(layer, copy, &shapes, columns, count, may_stay(layer, known))) {
        stayed = layer;
        strcpy(stayed_table, table);
    }
    put("{\"name\":");
    put_text(OGR_L_GetName(layer));
    put(",\"table\":\"%s\",\"has_geometry_column\":%s,\"system\":\"%s\",\"epsg\":%d", table,
        geometry_type == NO_GEOMETRY ? "false" : "true", known, code);
    tell_shapes(&shapes);
    put(",\"columns\":[");
    for (int field = 0; field < count; field++) {
        put(field ? "," : "");
        tell_column(columns + field);
    }
    put("]}");
    forget_columns(columns, count);
}

/* ---- commands ---- */

/* The texts of a list, which ends with an empty one. */
static char **take_list(char ***at)
{
    char **list = *at;
    while (**at && ***at)
        (*at)++;
    if (**at)
        *(*at)++ = NULL;
    return list;
}

static void tell_messages(void)
{
    put(",\"messages\":");
    for (size_t at = 0; at < messages_size; at++) /* a driver may quote what is no text at all */
        if ((unsigned char)messages[at] > 126)
            messages[at] = '?';
    put_text(messages);
    put("}");
}

static void open_source(char **at)
{
    const char *name = *at++;
    char **drivers = take_list(&at), **open_options = take_list(&at);
    if (source)
        GDALClose(source);
    latest = source = GDALOpenEx(name, OF_VECTOR | OF_VERBOSE, (options)drivers, (options)open_options, NULL);
    put("{\"ok\":%s", source && !failures ? "true" : "false");
    tell_messages();
}

static void look(char **at)
{
    look_at_separated(at[0], at[1] ? at[1] : "");
    tell_messages();
}

static void examine(char **at)
{
    examine_workbook(at[0]);
    tell_messages();
}

static void restyle(char **at)
{
    int ok = at[0] && at[1] && at[2] && copy_with_formats(at[0], at[1], at + 2);
    put("{\"ok\":%s", ok ? "true" : "false");
    tell_messages();
}

/* Copy a file of separated values under a new header, and write the types of its columns beside it. */
static void head(char **at)
{
    int is_whole = at[0] && at[1] && at[2] && at[3] && at[4] && at[5];
    int ok = is_whole && copy_under_header(at[0], at[1], strtoull(at[2], NULL, 10), at[3]) && write_text(at[4], at[5]);
    put("{\"ok\":%s", ok ? "true" : "false");
    tell_messages();
}

static void load(char **at)
{
    const char *system = *at ? *at : "";
    handle driver = GDALGetDriverByName("Memory");
    driver = driver ? driver : GDALGetDriverByName("MEM");
    if (!memory && driver)
        memory = GDALCreate(driver, "", 0, 0, 0, 0, NULL);
    latest = memory;
    int count = source && memory ? GDALDatasetGetLayerCount(source) : 0;
    refused = !memory ? "memory" : count > MOST_LAYERS ? "layers" : NULL;
    bring_in();
    begin_reading(refused ? NULL : source);
    put("{\"layers\":[");
    for (int number = 0; number < count && !refused; number++) {
        put(number ? "," : "");
        load_layer(GDALDatasetGetLayer(source, number), system);
    }
    if (refused || failures || !source) {
        take_back_answer();
        put("{\"ok\":false,\"layers\":[]");
    } else
        put("],\"ok\":true");
    if (stayed) { /* so that it is not closed when another file is opened */
        stayed_in = source;
        source = NULL;
    }
    tell_messages();
}

/* The numbers in the first row of what a query finds in the database that was loaded. */
static void query(char **at)
{
    handle database = source ? source : stayed_in, found = NULL, row = NULL;
    if (database)
        found = GDALDatasetExecuteSQL(database, at[0], NULL, NULL);
    if (found)
        row = OGR_L_GetNextFeature(found);
    put("{\"numbers\":[");
    for (int field = 0, count = row ? OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(found)) : 0; field < count; field++)
        put("%s%.0f", field ? "," : "", OGR_F_GetFieldAsDouble(row, field));
    put("],\"ok\":%s", row && !failures ? "true" : "false");
    if (row)
        OGR_F_Destroy(row);
    if (found)
        GDALDatasetReleaseResultSet(database, found);
    tell_messages();
}

static void set_typed(handle feature, int field, const char *text, int type, int subtype)
{
    if (subtype == BOOLEAN)
        OGR_F_SetFieldInteger(feature, field, strcmp(text, "true") == 0);
    else if (type == INTEGER64)
        OGR_F_SetFieldInteger64(feature, field, strtoll(text, NULL, 10));
    else if (type == REAL)
        OGR_F_SetFieldDouble(feature, field, CPLStrtod(text, NULL));
    else
        OGR_F_SetFieldString(feature, field, text);
}

static int type_of(const char *name, handle field, int *subtype)
{
    *subtype = PLAIN;
    if (strcmp(name, "boolean") == 0)
        *subtype = BOOLEAN;
    int type = strcmp(name, "boolean") == 0   ? INTEGER
               : strcmp(name, "integer") == 0 ? INTEGER64
               : strcmp(name, "real") == 0    ? REAL
               : strcmp(name, "date") == 0    ? DATE
                                              : UNCHANGED;
    if (type == UNCHANGED) {
        *subtype = OGR_Fld_GetSubType(field);
        type = OGR_Fld_GetType(field);
    }
    return type;
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

static void make_anew(char **at)
{
    const char *table = at[0], *name = at[1];
    int index = memory_index(table), count = 0, ok = index >= 0, kept = 0;
    handle old = ok ? GDALDatasetGetLayer(memory, index) : NULL, definition = ok ? OGR_L_GetLayerDefn(old) : NULL, feature;
    handle made = ok ? GDALDatasetCreateLayer(memory, name, OGR_L_GetSpatialRef(old), OGR_FD_GetGeomType(definition), NULL)
                     : NULL;
    struct {
        int from, type, subtype, is_parsed;
    } columns[MOST_COLUMNS];
    int map[MOST_COLUMNS];
    count = ok ? OGR_FD_GetFieldCount(definition) : 0;
    for (int field = 0; field < count && field < MOST_COLUMNS; field++)
        map[field] = -1;
    for (at += 2; made && at[0] && at[1] && at[2] && kept < MOST_COLUMNS; at += 3, kept++) {
        int from = atoi(at[0]);
        if (from < 0 || from >= count)
            _exit(1);
        handle field = OGR_FD_GetFieldDefn(definition, from);
        columns[kept].from = from;
        columns[kept].type = type_of(at[2], field, &columns[kept].subtype);
        columns[kept].is_parsed = columns[kept].type != OGR_Fld_GetType(field) || columns[kept].subtype != OGR_Fld_GetSubType(field);
        if (!columns[kept].is_parsed)
            map[from] = kept;
        create_field(made, at[1], columns[kept].type, columns[kept].subtype,
                     columns[kept].is_parsed ? 0 : OGR_Fld_GetWidth(field));
    }
    ok = made != NULL;
    if (ok) {
        GDALSetMetadata(made, GDALGetMetadata(old, NULL), NULL);
        handle own = OGR_L_GetLayerDefn(made);
        OGR_L_ResetReading(old);
        while ((feature = OGR_L_GetNextFeature(old))) {
            handle copy = OGR_F_Create(own), geometry = OGR_F_StealGeometry(feature);
            OGR_F_SetFromWithMap(copy, feature, 1, map);
            for (int field = 0; field < kept; field++)
                if (columns[field].is_parsed) {
                    if (OGR_F_IsFieldSetAndNotNull(feature, columns[field].from))
                        set_typed(copy, field, OGR_F_GetFieldAsString(feature, columns[field].from), columns[field].type,
                                  columns[field].subtype);
                    else
                        OGR_F_SetFieldNull(copy, field);
                }
            if (geometry)
                OGR_F_SetGeometryDirectly(copy, geometry);
            ok &= OGR_L_CreateFeature(made, copy) == 0;
            OGR_F_Destroy(copy);
            OGR_F_Destroy(feature);
        }
        GDALDatasetDeleteLayer(memory, index);
    }
    put("{\"ok\":%s", ok && !failures ? "true" : "false");
    tell_messages();
}

/* Give a table the columns at the given positions, with new names and types. It is copied unless only names change,
 * because a second copy takes as much memory as the first. */
static void alter(char **at)
{
    const char *table = at[0], *name = at[1];
    int found = memory_index(table);
    bring_in();
    if (found >= 0 && strcmp(table, name) == 0) {
        handle layer = GDALDatasetGetLayer(memory, found);
        if (is_renaming(OGR_L_GetLayerDefn(layer), at + 2)) {
            put("{\"ok\":%s", rename_columns(layer, at + 2) && !failures ? "true" : "false");
            tell_messages();
            return;
        }
    }
    make_anew(at);
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
static void place(char **at)
{
    const char *table = *at++;
    bring_in();
    int index = memory_index(table), axes[MOST_AXES], count = 0, map[MOST_COLUMNS];
    handle old = index < 0 ? NULL : GDALDatasetGetLayer(memory, index), feature, point;
    handle definition = old ? OGR_L_GetLayerDefn(old) : NULL;
    struct shapes shapes = {.west = INFINITY, .south = INFINITY, .east = -INFINITY, .north = -INFINITY};
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
        while ((feature = OGR_L_GetNextFeature(old))) {
            handle copy = OGR_F_Create(OGR_L_GetLayerDefn(made));
            OGR_F_SetFromWithMap(copy, feature, 1, map);
            shapes.features++;
            if ((point = point_of(feature, axes, count))) {
                see_geometry(&shapes, point);
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
    put("},\"ok\":%s", ok && !failures ? "true" : "false");
    tell_messages();
}

/* The arguments for the layer that has stayed in its file, written under the name by which commands know it. None selects
 * it: it is the only one, and its name there, which comes from the upload, could be an option. There is room for one more
 * before them. */
static char **with_stayed_layer(char **at)
{
    int count = 0, is_named = 0;
    while (at[count])
        is_named |= strcmp(at[count++], "-nln") == 0;
    char **made = calloc((size_t)count + 4, sizeof *made), **to = made + 1;
    if (!made)
        _exit(1);
    if (!is_named) {
        *to++ = "-nln";
        *to++ = stayed_table;
    }
    for (int number = 0; number < count; number++)
        if (strcmp(at[number], stayed_table) != 0 || (number && strcmp(at[number - 1], "-nln") == 0))
            *to++ = at[number];
    return made + 1;
}

/* Do what ogr2ogr's main() does with its arguments. The target's name comes first; the source is what is open or held. */
static void translate(char **at)
{
    const char *target = *at++;
    handle from = latest, existing = NULL, written = NULL;
    int is_update = 0, misused = 0;
    for (char **argument = at; *argument; argument++)
        is_update |= strcmp(*argument, "-update") == 0 || strcmp(*argument, "-append") == 0;
    if (stayed && from == memory) {
        from = stayed_in;
        at = with_stayed_layer(at);
    }
    if (known_features(from) > 0)
        *--at = "-progress"; /* in place of the target's name; with unknown counts, it would only cause a warning */
    handle wishes = from ? GDALVectorTranslateOptionsNew(at, NULL) : NULL;
    if (wishes)
        GDALVectorTranslateOptionsSetProgress(wishes, report_share, NULL);
    if (wishes && is_update)
        existing = GDALOpenEx(target, OF_VECTOR | OF_UPDATE | OF_VERBOSE, NULL, NULL, NULL);
    if (wishes && (!is_update || existing))
        written = GDALVectorTranslate(existing ? NULL : target, existing, 1, &from, wishes, &misused);
    if (written || existing)
        GDALClose(written ? written : existing);
    put("{\"ok\":%s", written && !misused ? "true" : "false");
    tell_messages();
}

static void count(char **at)
{
    const char *name = *at++;
    int64_t most_cells = *at ? atoll(*at++) : 0;
    char **drivers = take_list(&at), **open_options = take_list(&at);
    refused = NULL;
    put("{\"layers\":[");
    int is_read = count_result(name, most_cells, (options)drivers, (options)open_options);
    put("],\"ok\":%s", is_read && !refused ? "true" : "false");
    tell_messages();
}

static void compare(char **at)
{
    const char *name = *at++;
    int code = *at ? atoi(*at++) : 0;
    char **drivers = take_list(&at), **open_options = take_list(&at);
    int is_read = compare_system(name, code, (options)drivers, (options)open_options);
    put(",\"ok\":%s", is_read ? "true" : "false");
    tell_messages();
}

/* What strays in the layers of the given names that are held, or, without names, in all layers of what is open. */
static void stray(char **at)
{
    int source_code = atoi(at[0]), target_code = at[1] ? atoi(at[1]) : 0, told = 0;
    char **names = at + (at[1] ? 2 : 1);
    put("{\"layers\":[");
    for (int number = 0, layers = *names || !latest ? 0 : GDALDatasetGetLayerCount(latest); number < layers; number++) {
        put(told++ ? "," : "");
        tell_strays(GDALDatasetGetLayer(latest, number), source_code, target_code);
    }
    for (; *names; names++) {
        handle layer = stayed && strcmp(*names, stayed_table) == 0 ? stayed : memory ? GDALDatasetGetLayerByName(memory, *names) : NULL;
        put(told++ ? "," : "");
        if (layer)
            tell_strays(layer, source_code, target_code);
        else
            put("{}");
    }
    put("],\"ok\":true");
    tell_messages();
}

static void tally(char **at)
{
    tally_features(at[0]);
    tell_messages();
}

static const struct {
    const char *name;
    void (*carry_out)(char **);
} commands[] = {
    {"open", open_source},
    {"look", look},
    {"head", head},
    {"examine", examine},
    {"restyle", restyle},
    {"load", load},
    {"alter", alter},
    {"place", place},
    {"query", query},
    {"stray", stray},
    {"translate", translate},
    {"count", count},
    {"compare", compare},
    {"tally", tally},
};

/* ---- the conversation ---- */

static int read_all(char *into, size_t size)
{
    for (size_t got = 0; got < size;) {
        struct pollfd waited = {.fd = questions, .events = POLLIN};
        if (poll(&waited, 1, PATIENCE_MS) == 0)
            return 0;
        ssize_t found = read(questions, into + got, size - got);
        if (found < 0 && errno == EINTR)
            continue;
        if (found <= 0)
            return 0;
        got += (size_t)found;
    }
    return 1;
}

/* The texts of the next command; none after the last one. */
static char **next_command(void)
{
    uint32_t size;
    if (!read_all((char *)&size, sizeof size) || !size || size > MOST_BYTES)
        return NULL;
    char *text = malloc(size + 1), **texts = calloc((size_t)size + 8, sizeof *texts);
    if (!text || !texts || !read_all(text, size))
        return NULL;
    text[size] = 0;
    size_t number = 0;
    for (char *at = text; at < text + size; at += strlen(at) + 1)
        texts[number++] = at;
    return texts;
}

int converse(const char *question_pipe, const char *answer_pipe)
{
    char **texts;
    questions = open(question_pipe, O_RDONLY | O_CLOEXEC);
    answers = open(answer_pipe, O_WRONLY | O_CLOEXEC);
    if (questions < 0 || answers < 0)
        return 1;
    GDALAllRegister();
    CPLSetErrorHandler(hear);
    while ((texts = next_command())) {
        size_t number = 0, known = sizeof commands / sizeof *commands;
        while (number < known && strcmp(commands[number].name, texts[0]) != 0)
            number++;
        if (number == known || !texts[1])
            return 1;
        report_at_ms = now_ms() + REPORT_MS;
        messages_size = 0;
        messages[0] = 0;
        failures = 0;
        commands[number].carry_out(texts + 1);
        send_answer(answers);
    }
    return 0;
}
