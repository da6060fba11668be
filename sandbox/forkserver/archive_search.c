/* Seeks in a part of an archive, of which it keeps one piece at a time in memory, which ends before a cell or the like. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive_search.h"
#include "gdal.h"
#include "opendocument_rows.h"
#include "text_kinds.h"
#include "xml_tags.h"

enum { PIECE = 1 << 20, LONGEST_PATH = 512, MOST_ROWS = 10000, LONGEST_CELL = 1 << 16 };

static const char REPEATED[] = "number-rows-repeated=\"", SHEET_END[] = "</table:table>", CELL_TEXT[] = "<text:p",
                  CELL_VALUE[] = " office:value", COVERED[] = "<table:covered-table-cell", DATE_VALUE[] = "date-value=",
                  NUMBER_VALUE[] = " office:value=", FORMULA[] = "table:formula", CELL[] = "<table:table-cell",
                  CELL_END[] = "</table:table-cell", NO_TEXT[] = "<text:p/>",
                  ZERO[] = "><text:p>0", TAG[] = "<table:";

/* Whether rows of a sheet follow others that repeat so often that the driver stops there. `is_past` says if what begins at `at`
   is past such rows. */
static int has_rows_past(const char *at, const char *end, int *is_past)
{
    for (;;) {
        const char *next = find(at, end, *is_past ? SHEET_END : REPEATED);
        const char *last = next ? next : end;
        if (*is_past && (find(at, last, CELL_TEXT) || find(at, last, CELL_VALUE)))
            return 1;
        if (!next)
            return 0;
        at = next + (*is_past ? sizeof SHEET_END : sizeof REPEATED) - 1;
        int times = *is_past ? 1 : atoi(at);
        *is_past = times < 1 || times > MOST_ROWS;
    }
}

/* Whether a cell that others cover has a value or stands for several. */
static int has_odd_cover(const char *at, const char *end)
{
    while ((at = find(at, end, COVERED))) {
        struct tag cell = tag_at(at, end, COVERED);
        if (!cell.end || attribute(cell, "office:value-type").end || attribute(cell, "table:number-columns-repeated").end)
            return 1;
        at = cell.end;
    }
    return 0;
}

/* Whether a cell with a formula has no value and no text. */
static int lacks_result(const char *at, const char *end)
{
    static const char *const values[] = {"office:value", "office:date-value", "office:time-value", "office:boolean-value"};
    for (const char *past = at; (at = find(at, end, FORMULA)); past = at += sizeof FORMULA - 1) {
        const char *open = at;
        while (open > past && *open != '<')
            open--;
        struct tag cell = tag_at(open, end, CELL);
        int has_value = 0;
        for (size_t kind = 0; cell.end && kind < sizeof values / sizeof *values; kind++)
            has_value |= attribute(cell, values[kind]).end != NULL;
        const char *content = cell.end ? past_blanks(cell.end + 1, end) : end;
        int is_empty = !cell.end || cell.end[-1] == '/' || end - content < (long)sizeof CELL_END ||
                       begins(content, end, CELL_END) || begins(content, end, NO_TEXT) || begins(content, end, "<text:p></");
        if (is_empty && !has_value && begins(open, end, CELL))
            return 1;
    }
    return 0;
}

/* Whether a cell says its text in its tag, or shows one and does not say that it holds one; see cell_texts.py. */
static int has_odd_text(const char *at, const char *end)
{
    for (; (at = find(at, end, CELL)); at += sizeof CELL - 1) {
        struct tag cell = tag_at(at, end, CELL);
        const char *content = cell.end ? past_blanks(cell.end + 1, end) : end;
        if (!cell.end || attribute(cell, "table:formula").end)
            continue;
        int shows = cell.end[-1] != '/' && begins(content, end, CELL_TEXT);
        if (attribute(cell, "office:string-value").end || (shows && !attribute(cell, "office:value-type").end))
            return 1;
    }
    return 0;
}

/* Whether a cell shows zeros before its number, as 00501. */
static int shows_zeros(const char *at, const char *end)
{
    for (const char *past = at; (at = find(at, end, ZERO)); past = at += sizeof ZERO - 1) {
        const char *open = at;
        if (!isdigit((unsigned char)at[sizeof ZERO - 1]))
            continue;
        while (open > past && *open != '<')
            open--;
        struct tag cell = tag_at(open, end, CELL);
        if (*open != '<' || (cell.end && attribute(cell, "office:value").end))
            return 1;
    }
    return 0;
}

/* Whether a date in quotation marks is written in another way than 2024-02-29T12:30:00.123. */
static int is_odd_date(const char *at)
{
    enum { MILLISECONDS = 3 };
    char mark = *at;
    if (!mark)
        return 0;
    at++;
    const char *date = past_pattern(at, "9999-99-99"), *time = date ? past_pattern(date, "T29:59:59") : NULL;
    const char *last = time ? time : date;
    if (time && *time == '.') {
        const char *exact = past_digits(time + 1);
        last = exact - time - 1 > MILLISECONDS ? time + 1 + MILLISECONDS : exact;
        last += strspn(last, "0");
    }
    return (!last || *last != mark) && strchr(at, mark);
}

/* Whether a cell shows letters or signs beside its number, from behind its value on; see cell_texts.py. */
static int shows_words(const char *at, const char *end)
{
    const char *text = memchr(at, '>', (size_t)(end - at));
    text = text ? past_blanks(text + 1, end) : end;
    if (!begins(text, end, "<text:p>"))
        return 0;
    for (text += strlen("<text:p>"); text < end && *text != '<'; text++) {
        if (*text == '&')
            text += strcspn(text, ";<");
        int is_letter = isalpha((unsigned char)*text) && *text != 'E' && *text != 'e';
        if (is_letter || *text == '$' || begins(text, end, "\xc2\xb0") || begins(text, end, "\xe2\x82"))
            return 1;
        if (*text == '\xc2' && text + 1 < end && (unsigned char)text[1] >= 0xa2 && (unsigned char)text[1] <= 0xa5)
            return 1;
    }
    return 0;
}

/* Whether a value in quotation marks is no number, or a whole one of so many digits that no floating-point number may be it. */
static int is_odd_number(const char *at)
{
    enum { LEAST_DIGITS = 16 };
    char mark = *at;
    at += mark != 0;
    at += *at == '-';
    const char *last = past_digits(at);
    long digits = last - at;
    if (digits >= LEAST_DIGITS && *last == mark)
        return 1;
    if (*last == '.') {
        const char *part = past_digits(last + 1);
        digits += part - last - 1;
        last = part;
    }
    if (*last == 'e' || *last == 'E')
        last = past_digits(last + 1 + (last[1] == '-' || last[1] == '+'));
    return *last && (*last != mark || !digits);
}

/* Whether there is such a date or number, or a number beside which its cell shows more. */
static int has_odd_value(const char *at, const char *end)
{
    for (const char *date = at; (date = find(date, end, DATE_VALUE));)
        if (is_odd_date(date += sizeof DATE_VALUE - 1))
            return 1;
    while ((at = find(at, end, NUMBER_VALUE))) {
        at += sizeof NUMBER_VALUE - 1;
        if (is_odd_number(at) || shows_words(at, end))
            return 1;
    }
    return 0;
}

/* Where the last tag of a cell or the like begins, so that no piece ends within one; far from these, where any other does. */
static char *last_tag(char *start, char *end)
{
    char *least = end - start > LONGEST_CELL ? end - LONGEST_CELL : start, *last = NULL;
    for (char *at = end; (at = memrchr(least, '<', (size_t)(at - least)));) {
        last = last ? last : at;
        if (at > start && begins(at, end, TAG))
            return at;
    }
    return last && last > start ? last : end;
}

struct part_search search_part(const char *file, const char *part, char *const *texts)
{
    char path[LONGEST_PATH], *piece = malloc(PIECE + 1);
    size_t rest = 0, got = 1;
    struct part_search found = {0, 0};
    struct sheet_rows *rows = make_sheet_rows();
    struct ods_place place = {0, 0, 0};
    int is_past = 0;
    if (!piece)
        _exit(1);
    snprintf(path, sizeof path, "/vsizip/%s/%s", file, part);
    handle opened = VSIFOpenL(path, "rb");
    while (opened && !found.rows && got) {
        got = VSIFReadL(piece + rest, 1, PIECE - rest, opened);
        char *end = piece + rest + got, *cut = got ? last_tag(piece, end) : end, next = *cut;
        *cut = 0;
        for (char *const *text = texts; *text && !found.text; text++)
            found.text = find(piece, cut, *text) != NULL;
        found.text = found.text || has_odd_cover(piece, cut) || lacks_result(piece, cut) || has_odd_value(piece, cut) ||
                     shows_zeros(piece, cut) || has_odd_text(piece, cut);
        if (!found.text)
            examine_ods_rows(rows, &place, piece, cut);
        found.rows = has_rows_past(piece, cut, &is_past);
        *cut = next;
        rest = (size_t)(end - cut);
        memmove(piece, cut, rest);
    }
    if (opened)
        VSIFCloseL(opened);
    struct rows_found of_rows = rows_of_all(rows);
    found.text = found.text || of_rows.blank_rows.count || of_rows.mixed.count || of_rows.unlike;
    free(rows);
    free(piece);
    return found;
}
