/*
 * `are_usual(KINDS, value, …)` tells queries whether all of these values are such as columns of their kinds usually hold. A letter
 * of KINDS stands for each. The conditions in service/engine/jailed/declared.py, which take several times as long, are only asked
 * about rows with other values: none of them holds for what is usual here.
 *
 * It needs the SQLite that GDAL uses to be a library of its own. If GDAL has one within itself, queries fail, and the file takes the
 * way of all for which a session cannot answer.
 */
#define _GNU_SOURCE
#include <string.h>

#include "gdal.h"
#include "text_kinds.h"
#include "usual_values.h"

GDAL int sqlite3_auto_extension(void (*)(void));
GDAL int sqlite3_create_function_v2(handle, const char *, int, int, void *, void (*)(handle, int, handle *),
                                    void (*)(handle, int, handle *), void (*)(handle), void (*)(void *));
GDAL int sqlite3_value_type(handle);
GDAL int64_t sqlite3_value_int64(handle);
GDAL int sqlite3_value_bytes(handle);
GDAL const void *sqlite3_value_blob(handle);
GDAL void sqlite3_result_int(handle, int);

enum { SQL_INTEGER = 1, SQL_FLOAT, SQL_TEXT, SQL_BLOB, SQL_NULL }; /* the types of values */
enum { UTF_8 = 1, DETERMINISTIC = 0x800, NOT_IN_VIEWS = 0x80000, ANY_COUNT = -1 };
enum { DATE_BYTES = 10, LONGEST_MOMENT = 29 };

static int is_within(int64_t number, int bits)
{
    int64_t limit = (int64_t)1 << bits;
    return -limit <= number && number < limit;
}

/* What follows a time: nothing, or milliseconds, or a zone as in +01:00 or Z, or both. */
static int is_end_of_time(const char *at)
{
    const char *past = past_pattern(at, ".999");
    at = past ? past : at;
    if (*at == '+' || *at == '-')
        past = past_pattern(at + 1, "99:99");
    else
        past = at + (*at == 'Z');
    return past && !*past;
}

/* Whether a text, which need not end with a zero, is a date, or a moment if it `has_time`. */
static int is_moment(const char *start, size_t size, int has_time)
{
    char text[LONGEST_MOMENT + 1];
    if (size > LONGEST_MOMENT)
        return 0;
    memcpy(text, start, size);
    text[size] = 0;
    const char *end = past_pattern(text, "9999-99-99");
    if (!end || !is_in_calendar(text))
        return 0;
    if (!has_time)
        return !*end;
    if ((*end != 'T' && *end != ' ') || (end[1] == '2' && end[2] > '3'))
        return 0;
    end = past_pattern(end + 1, "29:59:59");
    return end && is_end_of_time(end);
}

static int is_usual(char kind, handle value)
{
    int type = sqlite3_value_type(value);
    if (type == SQL_NULL)
        return 1;
    if (type == SQL_INTEGER && strchr("bilr", kind)) {
        int64_t number = sqlite3_value_int64(value);
        return kind == 'l' || (kind == 'b' ? !(number & ~(int64_t)1) : is_within(number, kind == 'i' ? 31 : 53));
    }
    if (type != SQL_TEXT)
        return (kind == 'r' && type == SQL_FLOAT) || (kind == 'x' && type == SQL_BLOB);
    const char *text = sqlite3_value_blob(value); /* a copy would end with a zero */
    size_t size = (size_t)sqlite3_value_bytes(value);
    return !size ? kind == 't' : kind == 't' ? !memchr(text, 0, size) : strchr("dm", kind) && is_moment(text, size, kind == 'm');
}

static void are_usual(handle context, int count, handle *values)
{
    int type = count ? sqlite3_value_type(values[0]) : SQL_NULL;
    const char *kinds = type == SQL_TEXT ? sqlite3_value_blob(values[0]) : NULL;
    int all = kinds && sqlite3_value_bytes(values[0]) == count - 1;
    for (int number = 1; all && number < count; number++)
        all = is_usual(kinds[number - 1], values[number]);
    sqlite3_result_int(context, all);
}

static int add_to(handle database, char **error, const void *calls)
{
    (void)error, (void)calls;
    return sqlite3_create_function_v2(database, "are_usual", ANY_COUNT, UTF_8 | DETERMINISTIC | NOT_IN_VIEWS, NULL, are_usual,
                                      NULL, NULL, NULL);
}

void add_usual_values(void)
{
    if (sqlite3_auto_extension)
        sqlite3_auto_extension((void (*)(void))add_to);
}
