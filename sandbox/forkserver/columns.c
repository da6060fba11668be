/* Looks at the values in columns: what some format would change in them, and which types their texts fit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "answer.h"
#include "columns.h"
#include "text_kinds.h"
#include "utf_8.h"

enum { DBF_BYTES = 254, LEAST_WKB = 18, UNSET = -21121 /* in place of a value that is missing */ };

enum { MOST_EXACT = 17, MOST_EXACT_WHOLE = 15, LONGEST_EXACT = 800 }; /* no floating-point number has more than 767 digits */

/* The digits of a number from its first to its last one that is not zero; returns how many there are, at most LONGEST_EXACT. */
static size_t significant(const char *text, char *digits)
{
    size_t count = 0, size = 0;
    for (; *text && *text != 'e' && *text != 'E' && count < LONGEST_EXACT; text++)
        if (*text >= '0' && *text <= '9' && (count || *text != '0')) {
            digits[count++] = *text;
            size = *text == '0' ? size : count;
        }
    digits[size] = 0;
    return size;
}

/* Whether a number has digits that the floating-point number it becomes does not have. Programs that write more digits than
   they know write those of that one, or zeros; see kinds.py. */
static int loses_digits(const char *text, int is_whole)
{
    char digits[LONGEST_EXACT + 1], exact[LONGEST_EXACT + 16], same[LONGEST_EXACT + 1];
    size_t count = significant(text, digits);
    if (count <= (is_whole ? MOST_EXACT_WHOLE : MOST_EXACT))
        return 0;
    snprintf(exact, sizeof exact, "%.*e", (int)count - 1, CPLStrtod(text, NULL));
    significant(exact, same);
    return strcmp(digits, same) != 0;
}

/* Numbers without leading zeros, with at most 18 digits before the point, all of which a floating-point number has. */
static int fits_real(const char *text)
{
    text += *text == '-';
    const char *at = *text == '0' ? text + 1 : past_digits(text), *whole = at, *next;
    if (at == text || at - text > MOST_DIGITS)
        return 0;
    if (*at == '.') {
        if ((next = past_digits(at + 1)) == at + 1)
            return 0;
        at = next;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '-' || at[1] == '+' ? 2 : 1;
        if ((next = past_digits(at)) == at)
            return 0;
        at = next;
    }
    return !*at && (at - text <= MOST_EXACT_WHOLE || !loses_digits(text, at == whole));
}

/* Whole numbers of 64 bits without leading zeros. */
static int fits_integer(const char *text, size_t size)
{
    enum { LONGEST = 20 };
    char same[LONGEST + 1];
    const char *first = text + (*text == '-');
    int is_plain = *first == '0' ? size == 1 : *first != 0;
    if (!is_plain || size > LONGEST || first[strspn(first, "0123456789")])
        return 0;
    if (size <= MOST_DIGITS)
        return 1;
    snprintf(same, sizeof same, "%lld", strtoll(text, NULL, 10));
    return strcmp(same, text) == 0;
}

static int fits_date(const char *text, size_t size)
{
    return size >= 10 && past_pattern(text, "9999-99-99") && is_in_calendar(text);
}

static int fits_datetime(const char *text, size_t size)
{
    if (size < 19 || !fits_date(text, size) || !past_pattern(text + 10, "T29:59:59") || (text[11] == '2' && text[12] > '3'))
        return 0;
    const char *at = text + 19;
    if (*at == '.') {
        const char *end = past_digits(at + 1);
        if (end == at + 1 || is_finer(text))
            return 0;
        at = end;
    }
    at += *at == 'Z';
    return !*at;
}

static void examine_text_kinds(struct column *column, const char *text, size_t size)
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

/* Keep the common prefix of all texts. */
static void examine_prefix(struct column *column, const char *text)
{
    if (!column->prefix)
        column->prefix = strdup(text);
    else if (*column->prefix) {
        char *at = column->prefix;
        while (*at && *at == *text)
            at++, text++;
        while (at > column->prefix && (*at & 0xc0) == 0x80) /* within a character */
            at--;
        *at = 0;
    }
}

/* Keep the first few distinct values. */
static void examine_distinct(struct column *column, const char *text)
{
    int number = 0, most = column->distinct < DISTINCT ? column->distinct : DISTINCT;
    while (number < most && strcmp(column->values[number], text) != 0)
        number++;
    if (number < most)
        return;
    if (column->distinct++ < DISTINCT)
        column->values[number] = strdup(text);
}

/* Count a value that is of a kind, and keep the first row of them. */
static void examine_kind(const struct column *column, int is_of_kind, int64_t *count, int64_t *first)
{
    *count += is_of_kind;
    if (is_of_kind && !*first)
        *first = column->row;
}

static void examine_integer(struct column *column, int64_t value)
{
    column->total += fabs((double)value);
    column->at_32_bits += value == INT32_MIN || value == INT32_MAX;
    column->like_unset += value == UNSET;
    column->beyond_32_bits += value < INT32_MIN || value > INT32_MAX;
    column->beyond_53_bits += value < -(1LL << 53) || value > 1LL << 53;
    column->inexact_whole += value < -99999999999999999 || value > 999999999999999999;
}

/* Whether a whole number of 64 bits is another one with 15 digits. */
static int is_beyond_15_digits(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    return fabs(value) <= 9223372036854775808.0 && CPLStrtod(text, NULL) != value;
}

static void examine_real(struct column *column, double value)
{
    double size = fabs(value);
    column->total += size;
    column->infinite += isinf(value) != 0;
    column->tiny += size != 0 && size < 5e-7;
    column->inexact += size != 0 && size < 5e-7;
    if (size >= 1e15)
        examine_kind(column, is_beyond_15_digits(value), &column->beyond_15_digits, &column->first_beyond_15_digits);
    if (size <= 1e23 || isinf(value))
        return;
    examine_kind(column, value > 1e24 || value < 0, &column->beyond_dbf, &column->first_beyond_dbf);
    examine_kind(column, size > 1.797693134862315e308, &column->near_infinite, &column->first_near_infinite); /* 15 digits */
}

/* What a byte may be part of. Most bytes are part of nothing here, so that one look at each is enough. */
enum {
    BEYOND_ASCII = 1, CONTROL = 2, RETURN = 4, NO_CHARACTER = 8, BLANK = 16, GEOMETRY = 32, NO_NAME = 64, NUMBER = 128, ESCAPE = 256
};
static const unsigned short KINDS_OF_BYTES[256] = {
    [1 ... 8] = CONTROL, ['\t'] = BLANK | NO_NAME, ['\n'] = BLANK | NO_NAME, ['\v'] = CONTROL | BLANK, ['\f'] = CONTROL | BLANK,
    ['\r'] = RETURN | BLANK, [14 ... 31] = CONTROL, [' '] = BLANK | NUMBER, ['"'] = NO_NAME, ['*'] = NO_NAME, ['+'] = NUMBER,
    ['-'] = NUMBER, ['.'] = NUMBER, ['/'] = NO_NAME, ['0'] = GEOMETRY | NUMBER, ['1' ... '9'] = NUMBER, [':' ... '?'] = NO_NAME,
    ['C'] = GEOMETRY, ['G'] = GEOMETRY, ['L'] = GEOMETRY, ['M'] = GEOMETRY, ['P'] = GEOMETRY, ['S'] = GEOMETRY, ['T'] = GEOMETRY,
    ['\\'] = NO_NAME, ['_'] = ESCAPE, ['c'] = GEOMETRY, ['g'] = GEOMETRY, ['l'] = GEOMETRY, ['m'] = GEOMETRY, ['p'] = GEOMETRY,
    ['s'] = GEOMETRY, ['t'] = GEOMETRY, ['{'] = GEOMETRY, ['|'] = NO_NAME, [0x7f] = NO_NAME, [0x80 ... 0xee] = BEYOND_ASCII,
    [0xef] = BEYOND_ASCII | NO_CHARACTER, [0xf0 ... 0xff] = BEYOND_ASCII,
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
        if ((*text | ' ') == *words[number] && (*text == '{' || ((text[1] | ' ') == words[number][1] && /* most differ here */
                                                                strncasecmp(text, words[number], strlen(words[number])) == 0)))
            return 1;
    return 0;
}

/* Whether a text begins and ends like an object or an array of JSON; identifiers in braces and words in brackets do not. */
static int may_be_json(const char *text, size_t size)
{
    static const char *const words[] = {"tru", "fal", "nul", "nan", "inf"};
    if (size < 2 || (*text != '{' && *text != '[') || text[size - 1] != (*text == '{' ? '}' : ']'))
        return 0;
    if (strchr(*text == '{' ? "}\"'/ \t\n\r" : "]\"'/ \t\n\r[{-0123456789", text[1]))
        return 1;
    for (size_t number = 0; *text == '[' && number < sizeof words / sizeof *words; number++)
        if (strncasecmp(text + 1, words[number], strlen(words[number])) == 0)
            return 1;
    return 0;
}

/* Whether a text has U+FFFE or U+FFFF. */
static int has_no_character(const char *text)
{
    return strstr(text, "\xef\xbf\xbe") || strstr(text, "\xef\xbf\xbf");
}

/* Whether a text has what programs that read workbooks take for one character, as A for _x0041_. */
static int has_escape(const char *text)
{
    enum { MARK = 2, DIGITS = 4 };
    while ((text = strstr(text, "_x"))) {
        text += MARK;
        if (strspn(text, "0123456789ABCDEFabcdef") == DIGITS && text[DIGITS] == '_')
            return 1;
    }
    return 0;
}

static int is_space(char letter)
{
    return letter && strchr("\t\n\r ", letter);
}

/* Count a text with white space, which programs leave out around texts, or show as one blank. */
static void examine_space(struct column *column, const char *text, size_t size)
{
    int is_around = is_space(*text) || is_space(text[size - 1]);
    column->space_around += is_around;
    column->uneven_space += is_around || text[strcspn(text, "\t\n\r")] || strstr(text, "  ");
    column->leading_blanks += *text == ' ';
    column->trailing_blanks += text[size - 1] == ' ';
}

/* What some format changes in a text, or mistakes it for. */
static void examine_characters(struct column *column, const char *text, size_t size, unsigned kinds)
{
    column->no_layer_names += (kinds & (BEYOND_ASCII | CONTROL | RETURN | NO_NAME)) != 0;
    column->control += kinds & CONTROL || (kinds & NO_CHARACTER && has_no_character(text));
    column->carriage_returns += (kinds & RETURN) != 0;
    if (kinds & BLANK)
        examine_space(column, text, size);
    column->like_json += may_be_json(text, size);
    const char *bare = kinds & BLANK ? text + strspn(text, "\t\n\r ") : text;
    column->like_markup += *bare == '<';
    column->like_formulas += *bare == 'o' && strncmp(bare, "of:=", 4) == 0;
}

enum { MOST_DIGITS_OF_REALS = 15 };

/* Whether a program that infers types takes a text for a number and would write that differently; even a sign is one to some. */
static int is_other_as_number(const char *text)
{
    static const char digits[] = "0123456789";
    const char *start = text + strspn(text, " "), *number = start + (*start == '-' || *start == '+');
    size_t whole = strspn(number, digits), has_point = number[whole] == '.';
    size_t part = has_point ? strspn(number + whole + 1, digits) : 0;
    const char *end = number + whole + has_point + part, *after = end;
    if (whole + part && *end && strchr("eEdD", *end)) {
        size_t sign = end[1] == '-' || end[1] == '+', size = strspn(end + 1 + sign, digits);
        after = sign || size ? end + 1 + sign + size : end;
    }
    if (after == start || after[strspn(after, " ")])
        return 0;
    int begins_with_zero = *number == '0' && (whole > 1 || (number > start && !has_point));
    int is_as_written = start == text && !*end && *start != '+' && whole && !begins_with_zero &&
                        whole + part <= (has_point ? MOST_DIGITS_OF_REALS : MOST_DIGITS);
    return !is_as_written || (has_point && (!part || end[-1] == '0'));
}

/* Whether a text is what the driver makes of a number of more than 15 digits that is above a text, as 1.23456789012346e+16. */
static int is_cut_number(const char *text, size_t size)
{
    enum { SHORTEST = 20, LONGEST = 22 };
    const char *end = size < SHORTEST || size > LONGEST ? NULL : past_pattern(text + (*text == '-'), "9.99999999999999e+99");
    return end && !*past_digits(end);
}

enum { LONGEST_ID = 24 };

/* Count an id that does not end in a point and the number of its row, from 0 or from 1 on, as the first one does. */
static void examine_id(struct column *column, const char *text, int64_t row)
{
    const char *point = strrchr(text, '.');
    char number[LONGEST_ID];
    column->first_id = column->first_id || !point ? column->first_id : 1 + (atoll(point + 1) == row);
    snprintf(number, sizeof number, "%lld", (long long)(column->first_id == 2 ? row : row - 1));
    column->unnumbered += !point || strcmp(point + 1, number) != 0;
}

/* Whether spreadsheets cannot count a day of a year and month from their first day. */
static int is_before_march_1900(int year, int month)
{
    return year < 1900 || (year == 1900 && month < 3);
}

static void examine_date(struct column *column, int year, int month)
{
    column->before_1000 += year < 1000;
    column->before_march_1900 += is_before_march_1900(year, month);
}

enum { NO_ZONE = 0, UTC = 100 };

/* See a time as a GeoPackage stores it, with milliseconds, which is to be the same time when it is read. */
static void examine_moment(struct column *column, const struct moment *moment)
{
    enum { MOST_QUARTERS = 14 * 4 };
    int east = moment->zone == NO_ZONE ? 0 : moment->zone - UTC, year = moment->year, month = moment->month;
    int is_midnight = moment->hour == 0 && moment->minute == 0, is_first = month == 1 && moment->day == 1;
    double milliseconds = rint(moment->second * 1000.0);
    examine_kind(column, !is_day(year, month, moment->day), &column->no_day, &column->first_no_day);
    column->until_1970 += year < 1970 || (year == 1970 && is_first && is_midnight && milliseconds < 1000);
    column->before_march_1900 += is_before_march_1900(year, month);
    column->fractions += fmod(milliseconds, 1000) != 0;
    column->zoned += moment->zone != NO_ZONE;
    column->offsets += east != 0;
    column->unsteady += year < 0 || year > 9999 || month < 1 || month > 12 || moment->day < 1 || moment->day > 31 ||
                        moment->hour > 23 || moment->minute > 59 || moment->second < 0 || !(milliseconds < 60000) ||
                        (float)(milliseconds / 1000) != moment->second || abs(east) > MOST_QUARTERS;
}

/* The time that a text is which fits one. */
static struct moment moment_of(const char *text)
{
    enum { HOUR_AT = 11, MINUTE_AT = 14, SECOND_AT = 17 };
    return (struct moment){.year = (int16_t)atoi(text), .month = (uint8_t)atoi(text + MONTH_AT), .day = (uint8_t)atoi(text + DAY_AT),
                           .hour = (uint8_t)atoi(text + HOUR_AT), .minute = (uint8_t)atoi(text + MINUTE_AT),
                           .zone = strchr(text, 'Z') ? UTC : NO_ZONE, .second = (float)CPLStrtod(text + SECOND_AT, NULL)};
}

static void examine_text(struct column *column, const char *text)
{
    size_t size = strlen(text);
    unsigned kinds = kinds_of(text, size);
    if (kinds & BEYOND_ASCII && !is_utf_8(text, size))
        refused = "encoding";
    column->longest = size > column->longest ? size : column->longest;
    column->over_dbf_limit += size > DBF_BYTES;
    column->empty += size == 0;
    column->like_geometries += may_be_geometry(text);
    examine_characters(column, text, size, kinds);
    column->like_numbers += KINDS_OF_BYTES[(unsigned char)*text] & NUMBER && is_other_as_number(text);
    examine_kind(column, kinds & ESCAPE && has_escape(text), &column->like_escapes, &column->first_like_escapes);
    examine_kind(column, is_cut_number(text, size), &column->exponents, &column->first_exponents);
    if (column->fits)
        examine_text_kinds(column, text, size);
    if (column->fits & FITS_INTEGER)
        examine_integer(column, strtoll(text, NULL, 10));
    else if (column->fits & FITS_REAL)
        examine_real(column, CPLStrtod(text, NULL));
    else if (column->fits & FITS_DATE)
        examine_date(column, atoi(text), atoi(text + MONTH_AT));
    else if (column->fits & FITS_DATETIME) {
        struct moment moment = moment_of(text);
        examine_moment(column, &moment);
    }
    examine_prefix(column, text);
    if (column->distinct <= DISTINCT)
        examine_distinct(column, text);
}

const union value *value_of(handle feature, int field, int type)
{
    const union value *value = OGR_F_IsFieldSetAndNotNull(feature, field) ? OGR_F_GetRawFieldRef(feature, field) : NULL;
    return value && type == REAL && isnan(value->real) ? NULL : value;
}

void examine_value(struct column *column, handle feature, int field, const union value *value, int64_t row)
{
    column->filled++;
    column->row = row;
    if (column->type == STRING) {
        examine_text(column, value->string);
        if (column->is_id)
            examine_id(column, value->string, row);
        return;
    }
    if (column->type == DATE) {
        const struct moment *day = &value->moment;
        examine_date(column, day->year, day->month);
        examine_kind(column, !is_day(day->year, day->month, day->day), &column->no_day, &column->first_no_day);
    }
    if (column->type == DATETIME)
        examine_moment(column, &value->moment);
    if (column->type == REAL)
        examine_real(column, value->real);
    else if (column->type == INTEGER64 || (column->type == INTEGER && column->subtype != BOOLEAN))
        examine_integer(column, column->type == INTEGER ? value->integer : value->integer64);
    if (column->type != BINARY && column->distinct <= DISTINCT)
        examine_distinct(column, OGR_F_GetFieldAsString(feature, field));
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

static int is_list(int type)
{
    return type == INTEGER_LIST || type == REAL_LIST || type == STRING_LIST || type == INTEGER64_LIST;
}

static void tell_fits(const struct column *column)
{
    static const char *const kinds[] = {"boolean", "integer", "real", "date", "datetime"};
    for (int kind = 0, told = 0; kind < 5; kind++)
        if (column->filled && column->type == STRING && column->fits & 1 << kind)
            put("%s\"%s\"", told++ ? "," : "", kinds[kind]);
}

static void tell_distinct(const struct column *column)
{
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
}

void tell_column(const struct column *column)
{
    int is_whole = column->type == INTEGER || column->type == INTEGER64;
    int is_number = column->type == REAL || (is_whole && column->subtype != BOOLEAN);
    if (column->type == STRING) {
        is_whole = column->fits & FITS_INTEGER;
        is_number = column->filled && column->fits & (FITS_INTEGER | FITS_REAL);
    }
    put("{\"name\":");
    put_text(column->name);
    put(",\"type\":\"%s\",\"longest_bytes\":%zu,\"begins_empty\":%s,\"filled\":%lld", type_name(column), column->longest,
        column->begins_empty ? "true" : "false", (long long)column->filled);
#define TELL(name) \
    if (column->name) \
        put(",\"" #name "\":%lld", (long long)column->name);
    COLUMN_COUNTS(TELL)
#undef TELL
    if (is_list(column->type))
        put(",\"nested\":%lld", (long long)column->filled);
    put(",\"inexact_in_dbf\":%lld,\"total\":", (long long)(is_whole ? column->inexact_whole : column->inexact));
    put_number(is_number ? column->total : NAN);
    put(",\"fits\":[");
    tell_fits(column);
    put("],\"prefix\":");
    put_text(column->prefix && strlen(column->prefix) < 512 ? column->prefix : "");
    put(",\"values\":");
    tell_distinct(column);
    put("}");
}

void forget_columns(struct column *columns, int count)
{
    for (int number = 0; number < count; number++) {
        for (int value = 0; value < DISTINCT; value++)
            free(columns[number].values[value]);
        free(columns[number].prefix);
    }
    free(columns);
}
