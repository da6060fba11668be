/*
 * Tells what a text looks like: a number, a date, a time, a geometry. The rules are those of the expressions in
 * service/engine/jailed/kinds.py and places.py.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text_kinds.h"

enum { WHOLE_DIGITS = 15, GROUP = 3, MILLI = 3, WKB_DIGITS = 18, EXACT_DIGITS = 17 };
static const char SPACE[] = " \t\r\n";

static int is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

const char *past_digits(const char *at)
{
    while (is_digit(*at))
        at++;
    return at;
}

static const char *past_space(const char *at)
{
    return at + strspn(at, SPACE);
}

/* The position after an exponent; without one, where it would begin. */
static const char *past_exponent(const char *at)
{
    if (*at != 'e' && *at != 'E')
        return at;
    const char *digits = at + 1 + (at[1] == '-' || at[1] == '+'), *end = past_digits(digits);
    return end == digits ? at : end;
}

int is_number(const char *text)
{
    const char *at = past_space(text);
    at += *at == '-' || *at == '+';
    const char *whole = past_digits(at), *end = whole;
    if (*whole == '.' || *whole == ',') {
        end = past_digits(whole + 1);
        if (whole == at && end == whole + 1)
            return 0;
    } else if (whole == at)
        return 0;
    return !*past_space(past_exponent(end));
}

/* Whether the driver finds no value in a number: if it is infinite and has an exponent of four characters or more. */
static int is_unread(const char *number, const char *exponent)
{
    if (!*exponent || exponent[1] == '-' || strlen(exponent + 1) <= 3)
        return 0;
    char *copy = strdup(number), *comma = copy ? strchr(copy, ',') : NULL;
    if (comma)
        *comma = '.';
    int is_infinite = copy && isinf(strtod(copy, NULL));
    free(copy);
    return is_infinite;
}

/* A number as a column of numbers may hold it: without leading zeros, and without a sign but a minus. */
static enum kind number_kind(const char *text)
{
    text += *text == '-';
    const char *at = *text == '0' ? text + 1 : past_digits(text), *end;
    long digits = at - text;
    if (!*at)
        return !digits || digits > MOST_DIGITS ? TEXT : digits > WHOLE_DIGITS ? LONG : WHOLE;
    if (*at == '.' || *at == ',') {
        end = past_digits(at + 1);
        if (end == at + 1 || *past_exponent(end) || is_unread(text, end))
            return TEXT;
        int is_group = *text != '0' && digits && digits <= GROUP && end == at + 1 + GROUP && !*end;
        return *at == '.' ? (is_group ? POINTED : DECIMAL) : is_group ? GROUPED : COMMA;
    }
    end = past_exponent(at);
    return !digits || end == at || *end || is_unread(text, at) ? TEXT : is_digit(at[1]) ? CODE : DECIMAL;
}

const char *past_pattern(const char *at, const char *pattern)
{
    for (; *pattern; pattern++, at++) {
        int fits = is_digit(*pattern) ? is_digit(*at) && *at <= *pattern
                   : *pattern == '/'  ? *at == '/' || *at == '-'
                                      : *at == *pattern;
        if (!fits)
            return NULL;
    }
    return at;
}

int is_day(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    enum { FEBRUARY = 2, MONTHS = 12, LAST_YEAR = 9999 };
    int is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return year > 0 && year <= LAST_YEAR && month >= 1 && month <= MONTHS && day >= 1 &&
           day <= days[month - 1] + (month == FEBRUARY && is_leap);
}

int is_in_calendar(const char *day)
{
    return is_day(atoi(day), atoi(day + MONTH_AT), atoi(day + DAY_AT));
}

static const char *past_day(const char *text)
{
    const char *end = past_pattern(text, "9999/99/99");
    return end && is_in_calendar(text) ? end : NULL;
}

static int is_zone(const char *at)
{
    if (*at == 'Z')
        return !at[1];
    if ((*at != '+' && *at != '-') || !past_pattern(at + 1, "19") || (at[1] == '1' && at[2] > '4'))
        return !*at;
    at += 3;
    at += *at == ':' && at[1];
    return !*at || (strchr("0134", *at) && (!strcmp(at + 1, *at == '0' || *at == '3' ? "0" : "5")));
}

static int is_moment(const char *at)
{
    if ((*at != 'T' && *at != ' ') || !past_pattern(at + 1, "29:59") || (at[1] == '2' && at[2] > '3'))
        return 0;
    at += strlen("T00:00");
    const char *seconds = past_pattern(at, ":59");
    if (seconds) {
        at = seconds;
        const char *fraction = *at == '.' ? past_digits(at + 1) : at;
        at = fraction > at + 1 ? fraction : at;
    }
    return is_zone(at);
}

int has_many_digits(const char *text)
{
    const char *at = text + strspn(text, "-0.,"), *whole = past_digits(at);
    const char *end = *whole == '.' || *whole == ',' ? past_digits(whole + 1) : whole;
    return end - at - (end > whole) > EXACT_DIGITS;
}

int is_finer(const char *text)
{
    const char *point = strchr(text, '.'), *digits = point ? point + 1 : text;
    return point && past_digits(digits) > digits + MILLI && is_digit(digits[MILLI + strspn(digits + MILLI, "0")]);
}

int may_be_grouped(const char *text, char separator)
{
    const char *at = past_space(text);
    at += *at == '-' || *at == '+';
    while (*at == '0' && is_digit(at[1]))
        at++;
    const char *middle = past_digits(at), *end = *middle == separator ? past_digits(middle + 1) : middle;
    return *at != '0' && middle > at && middle - at <= GROUP && end == middle + 1 + GROUP && !*past_space(end);
}

int shows_decimals(const char *text)
{
    text = past_space(text);
    text += *text == '-' || *text == '+';
    const char *first = past_digits(text), *at = first;
    char separator = *at;
    if (*text == '0' || at == text || at - text > GROUP || (separator != '.' && separator != ','))
        return 0;
    while (*at == separator && past_digits(at + 1) == at + 1 + GROUP)
        at += 1 + GROUP;
    if (at == first || *at != (separator == '.' ? ',' : '.'))
        return 0;
    const char *end = past_digits(at + 1);
    return end > at + 1 && !*past_space(end);
}

enum kind kind_of(const char *text)
{
    enum kind number = number_kind(text);
    if (number != TEXT)
        return number;
    const char *rest = past_day(text);
    return !rest ? TEXT : !*rest ? DAY : is_moment(rest) ? MOMENT : TEXT;
}

int stands_in(const char *text)
{
    static const char *const SAID[] = {
        "-", "--", "---", "\xe2\x80\x93", "\xe2\x80\x94", "\xe2\x88\x92", "*", ".", "..", "...", "?", "n/a", "na", "n.a.", "n.d.",
        "nd", "nan", "null", "none", "nil", "\\n", "missing", "unknown", "k.a.", "no data", "n. a.",
        "#n/a", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!"};
    static const char BLANKS[] = " \t\r\n";
    text += strspn(text, BLANKS);
    size_t size = strlen(text);
    while (size && strchr(BLANKS, text[size - 1]))
        size--;
    for (size_t number = 0; number < sizeof SAID / sizeof *SAID; number++)
        if (strlen(SAID[number]) == size && !strncasecmp(text, SAID[number], size))
            return 1;
    return 0;
}

static int is_word(char letter)
{
    return is_digit(letter) || letter == '_' || (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z');
}

static const char *past_word(const char *at, const char *word)
{
    size_t size = strlen(word);
    return (*at | ' ') == *word && strncasecmp(at, word, size) == 0 ? at + size : NULL; /* most differ at once */
}

static const char *past_dimensions(const char *at)
{
    at += (*at | ' ') == 'z';
    return at + ((*at | ' ') == 'm');
}

/* Whether the name of a type ends here, and a geometry of it begins; UNSURE if a letter or blank of another script follows. */
static int opens_geometry(const char *at)
{
    const char *end = past_dimensions(at);
    if (is_word(*end))
        return 0;
    at = past_space(end);
    end = past_dimensions(at);
    at = is_word(*end) ? at : past_space(end);
    const char *rest = past_word(at, "empty");
    rest = rest ? rest : at;
    return *rest & 0x80 ? UNSURE : *at == '(' || (rest > at && !is_word(*rest));
}

int is_geometry(const char *text)
{
    static const char *const simple[] = {"point", "linestring", "polygon", "curve", "surface"};
    static const char *const others[] = {"geometrycollection", "circularstring", "compoundcurve", "curvepolygon",
                                         "tin", "polyhedralsurface", "triangle"};
    const char *at = past_space(text), *rest;
    int opens;
    if (past_word(at, "srid="))
        return UNSURE;
    if (*at == '{')
        return strcasestr(at, "\"coordinates\"") != NULL;
    if (*at == '0') {
        size_t size = strspn(at, "0123456789abcdefABCDEF");
        if (size < WKB_DIGITS || (at[1] != '0' && at[1] != '1') || *past_space(at + size))
            return 0;
        return strchr("2367aAbBeEfF", at[at[1] == '0' ? 2 : 8]) ? UNSURE : 1; /* extended WKB may name its system */
    }
    const char *bare = past_word(at, "multi");
    bare = bare ? bare : at;
    for (size_t number = 0; number < sizeof simple / sizeof *simple; number++)
        if ((rest = past_word(bare, simple[number])) && (opens = opens_geometry(rest)))
            return opens;
    for (size_t number = 0; number < sizeof others / sizeof *others; number++)
        if ((rest = past_word(at, others[number])) && (opens = opens_geometry(rest)))
            return opens;
    return 0;
}
