/*
 * Examines the parts of a workbook (XLSX) before its driver reads them: the formats that its cells use, the formulas that
 * have no result, and the characters that are escaped. The counts are those of service/engine/jailed/cells.py. Workbooks
 * that count days from 1904, hold ISO dates, whole numbers that may have more than 64 bits, texts of formulas that may look
 * like numbers, readings of texts, or texts of several runs in cells, or dates beside numbers in a column without texts,
 * have prefixes before the names of elements, have parts in UTF-16, or are unusual in another way count as odd and are left
 * to service/engine/jailed/styles.py.
 * Whether the driver mistakes a format is for the service to decide.
 *
 * Sheets are read in pieces, so that memory is limited; no look at a tag goes beyond the next one, so that the time it takes
 * grows with the text.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "answer.h"
#include "gdal.h"
#include "sheet_rows.h"
#include "workbook.h"
#include "xml_tags.h"

enum { CHUNK = 1 << 20, MOST_SCANNED = 256 << 20, MOST_SHEETS = 1000, LONGEST_TAG = 400, LONGEST_PATH = 512 };
enum { MOST_PLACES = 4096, MOST_NUMBERS = 200, LONGEST_CODE = 255, NO_NUMBER = -1, FIRST_OWN = 164 };

/* Cells of a format that matter if it is one of dates or times: those that the driver takes for whole seconds, those in the
 * first row, texts and errors of formulas, those with a time of day, those beyond one day, and all numbers; and the rows of the
 * first of the last three. Also the fewest digits of a whole number without a sign, of which the format may show more. */
struct moments {
    int64_t late, named, texts, timed, first_timed, dated, first_dated, numbers, first_number, fewest_digits;
};

struct workbook {
    int is_odd, number_count, numbers[MOST_NUMBERS], is_own[MOST_NUMBERS];
    int64_t uncalculated, escaped, errors, rounded, truths, merged;
    int row, first_error, first_rounded, first_merged; /* in the sheet, from 1 on; 0 before the first */
    size_t scanned;
    char is_used[MOST_PLACES]; /* formats, by their position */
    char kinds[MOST_PLACES]; /* of the cells that have these formats, as far as that is plain to see */
    struct moments by_place[MOST_PLACES], by_number[MOST_NUMBERS];
    int hidden_sheets, has_values, has_empty_sheet, has_empty_text; /* the last of the texts that cells share */
    struct sheet_rows *rows;
};

/* ---- cells ---- */

/* What follows a formula, if there is one, from the end of a cell's start tag; NULL if its end is not plain to see. */
static const char *past_formula(const char *at, const char *end)
{
    at = past_blanks(at, end);
    struct tag formula = tag_at(at, end, "<f");
    if (!formula.end)
        return at;
    if (formula.end[-1] == '/')
        return past_blanks(formula.end + 1, end);
    at = memchr(formula.end, '<', (size_t)(end - formula.end));
    return at && begins(at, end, "</f>") ? past_blanks(at + strlen("</f>"), end) : NULL;
}

/* Whether a cell has a formula and no result, from the end of its start tag. */
static int lacks_result(const char *at, const char *end)
{
    struct tag formula = tag_at(past_blanks(at, end), end, "<f");
    if (!formula.end || formula.end - formula.start > LONGEST_TAG || !(at = past_formula(at, end)))
        return 0;
    struct tag result = tag_at(at, end, "<v");
    return begins(at, end, "</c>") || begins(at, end, "<v></v>") ||
           (result.end && past_blanks(result.start, result.end) == result.end - 1 && result.end[-1] == '/');
}

/* The value in a cell, from the end of its start tag, past a formula; NULL if there is none. */
static const char *value_in(const char *at, const char *end)
{
    at = past_formula(at, end);
    struct tag value = at ? tag_at(at, end, "<v") : (struct tag){0};
    return value.end && value.end[-1] != '/' ? value.end + 1 : NULL;
}

/* Whether a cell is plainly empty, from the end of its start tag. */
static int is_empty(const char *at, const char *end)
{
    at = past_formula(at, end);
    struct tag value = at ? tag_at(at, end, "<v") : (struct tag){0};
    return at && (begins(at, end, "</c") || (value.end && (value.end[-1] == '/' || begins(value.end + 1, end, "</v"))));
}

/* Whether a text may look like a number: it consists of what numbers consist of, or of references to characters, or it is not
 * plain to see, because of remarks or CDATA, say. */
static int may_look_like_number(const char *at, const char *end)
{
    const char *value = value_in(at, end), *first = value ? past_blanks(value, end) : end;
    if (!value)
        return !is_empty(at, end);
    if (first < end && *first == '<')
        return !begins(first, end, "</v");
    for (at = first; at < end && *at != '<'; at++)
        if (!strchr("0123456789+-.eEdDx&#; \t\r\n", *at))
            return 0;
    return at > first && strchr("0123456789+-.&", *first) != NULL;
}

/* Whether a cell is in the first row; cells and rows need not say where they are. */
static int is_in_first_row(const struct workbook *book, struct tag cell)
{
    struct tag reference = attribute(cell, "r");
    if (!reference.end)
        return book->row == 1;
    return reference.end - reference.start > 1 && reference.end[-1] == '1' && isalpha((unsigned char)reference.end[-2]);
}

/* Whether a moment is at least a millisecond from midnight. */
static int has_time(double seconds)
{
    return fabs(remainder(seconds, 86400)) >= 0.001;
}

static void examine_first(int64_t *first, int64_t row)
{
    if (row && (!*first || row < *first))
        *first = row;
}

static void add_moments(struct moments *to, struct moments more)
{
    to->late += more.late;
    to->named += more.named;
    to->texts += more.texts;
    to->timed += more.timed;
    to->dated += more.dated;
    to->numbers += more.numbers;
    examine_first(&to->first_timed, more.first_timed);
    examine_first(&to->first_dated, more.first_dated);
    examine_first(&to->first_number, more.first_number);
    examine_first(&to->fewest_digits, more.fewest_digits);
}

/* From when on a time of day is 24 hours in milliseconds, and becomes 00:00. */
#define UNTIL_MIDNIGHT 86399.9995

/* See cells.py for the fractions of seconds that the driver rounds. */
static void examine_number_in(struct workbook *book, struct moments *moments, struct tag cell, const char *end)
{
    enum { LONGEST_NUMBER = 40 };
    char copy[LONGEST_NUMBER] = "", *last;
    const char *at = value_in(cell.end + 1, end);
    if (!at)
        return;
    memcpy(copy, at, end - at < LONGEST_NUMBER ? (size_t)(end - at) : LONGEST_NUMBER - 1);
    double seconds = strtod(copy, &last) * 86400, fraction = seconds - floor(seconds);
    if (last == copy)
        return;
    moments->late += (fraction >= 0.99899 && fraction < 0.9995) || (fraction >= 0.0005 && fraction < 0.00101);
    moments->named += is_in_first_row(book, cell);
    size_t digits = strspn(copy, "0123456789");
    int timed = has_time(seconds), dated = seconds < 0 || seconds >= UNTIL_MIDNIGHT;
    add_moments(moments, (struct moments){
        .timed = timed, .first_timed = timed ? book->row : 0,
        .dated = dated, .first_dated = dated ? book->row : 0,
        .numbers = 1, .first_number = book->row,
        .fewest_digits = copy[digits] == '<' ? (int64_t)digits : 0,
    });
}

#define MOST_OF_64_BITS 9223372036854775807.0

/* Whether the value in a cell, from the end of its start tag, is a whole number that no floating-point number is; also tells if
   it may have more than 64 bits. */
static int is_rounded(const char *at, const char *end, int *is_beyond)
{
    enum { LEAST_DIGITS = 16, LONGEST_NUMBER = 40 };
    char number[LONGEST_NUMBER + 2] = "", exact[2 * LONGEST_NUMBER];
    const char *value = value_in(at, end), *last = value ? value + (value < end && *value == '-') : end;
    while (last < end && last - value < LONGEST_NUMBER && isdigit((unsigned char)*last))
        last++;
    if (!value || last == end || *last != '<' || last - value < LEAST_DIGITS)
        return 0;
    memcpy(number, value, (size_t)(last - value));
    double nearest = strtod(number, NULL);
    *is_beyond |= fabs(nearest) >= MOST_OF_64_BITS;
    snprintf(exact, sizeof exact, "%.0f", nearest);
    return strcmp(exact, number) != 0;
}

static int is_type(struct tag type, const char *name)
{
    return type.end && (size_t)(type.end - type.start) == strlen(name) && begins(type.start, type.end, name);
}

static void examine_cell(struct workbook *book, struct tag cell, const char *end)
{
    struct tag type = attribute(cell, "t");
    int is_filled = cell.end[-1] != '/', has_value = is_filled && !is_empty(cell.end + 1, end);
    int is_text = is_type(type, "str"), is_error = is_type(type, "e") && is_filled;
    int place = number_of(cell, "s", NO_NUMBER), is_number = !type.end || begins(type.start, type.end, "n");
    enum cell_kind kind = begins(type.start, type.end, "b") ? IS_TRUTH : !is_number ? IS_TEXT : IS_NUMBER;
    if (is_number && place >= 0 && place < MOST_PLACES && book->kinds[place])
        kind = (enum cell_kind)book->kinds[place];
    examine_cell_of(book->rows, cell, kind, end, has_value);
    book->has_values |= has_value;
    book->is_odd |= is_type(type, "d") || cell.end - cell.start > LONGEST_TAG || place >= MOST_PLACES;
    book->is_odd |= is_filled && (is_text || is_error) && may_look_like_number(cell.end + 1, end);
    book->errors += is_error;
    book->truths += is_filled && is_type(type, "b");
    if (is_error && book->errors == 1)
        book->first_error = book->row;
    book->uncalculated += !is_text && lacks_result(cell.end + 1, end);
    if (is_number && is_filled && is_rounded(cell.end + 1, end, &book->is_odd) && !book->rounded++)
        book->first_rounded = book->row;
    if (place < 0 || place >= MOST_PLACES)
        return;
    book->is_used[place] = 1;
    book->by_place[place].texts += is_text || is_error;
    if (is_number)
        examine_number_in(book, book->by_place + place, cell, end);
}

static void examine_escapes(struct workbook *book, const char *at, const char *end)
{
    enum { DIGITS = 4, SIZE = 7 };
    while ((at = find(at, end, "_x"))) {
        int digits = 0;
        while (digits < DIGITS && at + 2 + digits < end && isxdigit((unsigned char)at[2 + digits]))
            digits++;
        int is_escape = digits == DIGITS && at + SIZE <= end && at[SIZE - 1] == '_';
        book->escaped += is_escape;
        at += is_escape ? SIZE : 2;
    }
}

/* Whether a text is in UTF-16, in which each character of a tag has a zero; no other text may contain one. */
static int is_wide(const char *start, const char *end)
{
    return start < end && memchr(start, 0, (size_t)(end - start)) != NULL;
}

/* Whether the names of elements have a prefix, as in <x:row>, as that of the first one shows. */
static int has_prefix(const char *at, const char *end)
{
    while ((at = find(at, end, "<")) && ++at < end && strchr("?!", *at))
        continue;
    while (at && at < end && !strchr("></: \t\r\n", *at))
        at++;
    return at && at < end && *at == ':';
}

/* The first row of merged cells, such as 2 for A2:B5; 0 if they do not say it. */
static int row_of_merged(struct tag merged)
{
    struct tag cells = attribute(merged, "ref");
    while (cells.start < cells.end && isalpha((unsigned char)*cells.start))
        cells.start++;
    return cells.end ? (int)strtol(cells.start, NULL, 10) : 0;
}

static void examine_merged(struct workbook *book, struct tag merged)
{
    int row = row_of_merged(merged);
    book->merged++;
    if (!book->first_merged || row < book->first_merged)
        book->first_merged = row;
}

/* Whether one of the texts that cells share is empty: its driver takes such cells for empty ones. */
static int is_empty_text(struct tag shared, const char *end)
{
    struct tag text = tag_at(past_blanks(shared.end + 1, end), end, "<t");
    return shared.end[-1] == '/' || (text.end && (text.end[-1] == '/' || begins(text.end + 1, end, "</t")));
}

static void examine_piece(struct workbook *book, const char *start, const char *end)
{
    for (const char *at = start; at < end && (at = memchr(at, '<', (size_t)(end - at))); at++) {
        struct tag cell = tag_at(at, end, "<c"), row = cell.end ? cell : tag_at(at, end, "<row");
        struct tag merged = row.end ? row : tag_at(at, end, "<mergeCell"), column, text;
        if (cell.end)
            examine_cell(book, cell, end);
        else if (row.end)
            examine_row_of(book->rows, row, book->row = number_of(row, "r", book->row + 1));
        else if (merged.end)
            examine_merged(book, merged);
        else if ((column = tag_at(at, end, "<col")).end)
            examine_hidden_columns(book->rows, column);
        else if ((text = tag_at(at, end, "<si")).end)
            book->has_empty_text |= is_empty_text(text, end);
        else
            book->is_odd |= begins(at, end, "<rPh") || (book->row && tag_at(at, end, "<r").end);
    }
    examine_escapes(book, start, end);
    book->is_odd |= is_wide(start, end);
}

/* The last place in a text where a cell or a shared text begins, so that no piece ends within one; the rest is short. */
static const char *last_beginning(const char *start, const char *end)
{
    const char *least = end - start > CHUNK ? end - CHUNK : start;
    for (const char *at = end; (at = memrchr(least, '<', (size_t)(at - least)));)
        if (tag_at(at, end, "<c").end || tag_at(at, end, "<si").end)
            return at;
    return least;
}

/* Returns 0 if there is no such part. */
static int examine_part(struct workbook *book, const char *path)
{
    handle file = VSIFOpenL(path, "rb");
    char *text = malloc(2 * CHUNK);
    size_t rest = 0, got;
    int is_first = 1;
    if (!text)
        _exit(1);
    book->row = 0;
    while (file && !book->is_odd && (got = VSIFReadL(text + rest, 1, CHUNK, file))) {
        const char *end = text + rest + got, *cut = last_beginning(text, end);
        book->scanned += got;
        book->is_odd |= is_first && has_prefix(text, end);
        is_first = 0;
        book->is_odd |= book->scanned > MOST_SCANNED;
        examine_piece(book, text, cut);
        rest = (size_t)(end - cut);
        memmove(text, cut, rest);
    }
    examine_piece(book, text, text + rest);
    if (file)
        VSIFCloseL(file);
    free(text);
    return file != NULL;
}

static void examine_sheets(struct workbook *book, const char *file)
{
    char path[LONGEST_PATH];
    snprintf(path, sizeof path, "/vsizip/%s/xl/worksheets", file);
    char **names = VSIReadDir(path);
    book->is_odd |= !names;
    for (int number = 0; names && names[number] && !book->is_odd; number++) {
        const char *ending = strrchr(names[number], '.');
        int size = snprintf(path, sizeof path, "/vsizip/%s/xl/worksheets/%s", file, names[number]);
        book->is_odd |= size < 0 || (size_t)size >= sizeof path || number == MOST_SHEETS;
        if (!book->is_odd && ending && strcasecmp(ending, ".xml") == 0) {
            begin_sheet_rows(book->rows);
            book->has_values = 0;
            book->is_odd |= !examine_part(book, path);
            book->has_empty_sheet |= !book->has_values;
        }
    }
    CSLDestroy(names);
}

/* ---- formats ---- */

char *text_of_part(const char *file, const char *part, size_t *size)
{
    char path[LONGEST_PATH], *text = malloc(CHUNK);
    snprintf(path, sizeof path, "/vsizip/%s/xl/%s", file, part);
    handle opened = VSIFOpenL(path, "rb");
    *size = opened && text ? VSIFReadL(text, 1, CHUNK, opened) : 0;
    if (opened)
        VSIFCloseL(opened);
    if (*size && *size < CHUNK && !is_wide(text, text + *size) && !has_prefix(text, text + *size)) {
        text[*size] = 0;
        return text;
    }
    free(text);
    return NULL;
}

/* What cells with a format of the workbook's own hold, as far as its letters show it; jailed/styles.py knows better. */
static enum cell_kind kind_of_code(struct tag code)
{
    static const char QUOTE[] = "&quot;";
    int has_day = 0, has_hour = 0, has_month = 0, has_second = 0;
    for (const char *at = code.start, *end = code.end; at < end; at++) {
        int is_quoted = begins(at, end, QUOTE);
        const char *closing = is_quoted ? find(at + 1, end, QUOTE) : *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
        if (closing && !is_quoted && strchr("hHmMsS", at[1]) && (at[2] == ']' || at[2] == at[1]))
            return IS_NUMBER; /* elapsed time */
        int letter = closing || *at == '\\' ? 0 : tolower((unsigned char)*at);
        at = closing ? closing + (is_quoted ? sizeof QUOTE - 2 : 0) : at + (*at == '\\');
        has_day |= letter == 'd' || letter == 'y';
        has_hour |= letter == 'h';
        has_month |= letter == 'm';
        has_second |= letter == 's';
    }
    return has_day || (has_month && !has_hour && !has_second) ? IS_MOMENT : has_hour ? IS_CLOCK : IS_NUMBER;
}

static enum cell_kind kind_of_built_in(int number)
{
    int is_east_asian = (number >= 27 && number <= 36) || (number >= 50 && number <= 58);
    int is_clock = (number >= 18 && number <= 21) || number == 32 || number == 33;
    return is_clock ? IS_CLOCK : (number >= 14 && number <= 22) || is_east_asian ? IS_MOMENT : IS_NUMBER;
}

/* What the cells with each format hold: of those in a column, the driver makes texts if they differ. */
static void learn_kinds(struct workbook *book, const char *file)
{
    size_t size;
    int numbers[MOST_NUMBERS], count = 0, place = 0;
    char kinds[MOST_NUMBERS], *text = text_of_part(file, "styles.xml", &size);
    const char *end = text + (text ? size : 0);
    for (const char *at = text; text && (at = find(at, end, "<numFmt")) && count < MOST_NUMBERS; at++) {
        struct tag format = tag_at(at, end, "<numFmt"), code = attribute(format, "formatCode");
        if (format.end && code.end) {
            numbers[count] = number_of(format, "numFmtId", NO_NUMBER);
            kinds[count++] = (char)kind_of_code(code);
        }
    }
    const char *first = text ? find(text, end, "<cellXfs") : NULL, *last = first ? find(first, end, "</cellXfs") : NULL;
    for (const char *at = last ? first : NULL; at && place < MOST_PLACES && (at = find(at, last, "<xf")); at++) {
        struct tag format = tag_at(at, last, "<xf");
        int number = number_of(format, "numFmtId", 0), known = count;
        while (format.end && known && numbers[known - 1] != number)
            known--;
        if (format.end)
            book->kinds[place++] = known ? kinds[known - 1] : (char)kind_of_built_in(number);
    }
    free(text);
}

static void examine_addresses(struct workbook *book, const char *file)
{
    size_t size;
    char *text = text_of_part(file, "_rels/workbook.xml.rels", &size);
    book->is_odd |= !text;
    free(text);
}

/* A workbook that may count days from 1904 is odd, and so is one that refers to its sheets with another prefix than usual. */
static void examine_days(struct workbook *book, const char *file)
{
    size_t size;
    char *text = text_of_part(file, "workbook.xml", &size);
    book->is_odd |= !text;
    for (const char *at = text; at && (at = find(at, text + size, "date1904")); at++)
        book->is_odd |= strncmp(at, "date1904=\"0\"", 12) != 0 && strncmp(at, "date1904=\"false\"", 16) != 0;
    for (const char *at = text; at && (at = find(at, text + size, "<sheet")); at++) {
        struct tag sheet = tag_at(at, text + size, "<sheet"), state = sheet.end ? attribute(sheet, "state") : sheet;
        book->is_odd |= sheet.end && !attribute(sheet, "r:id").end;
        book->hidden_sheets += begins(state.start, state.end, "hidden") || begins(state.start, state.end, "veryHidden");
    }
    free(text);
}

/* Where a number is in the list; its end if it is not. */
static int place_of(const struct workbook *book, int number)
{
    int place = 0;
    while (place < book->number_count && book->numbers[place] != number)
        place++;
    return place;
}

static void examine_number(struct workbook *book, int number, struct moments moments)
{
    int known = place_of(book, number);
    book->is_odd |= known == MOST_NUMBERS;
    if (book->is_odd)
        return;
    if (known == book->number_count)
        book->numbers[book->number_count++] = number;
    add_moments(book->by_number + known, moments);
}

/* The numbers of the formats that cells use. */
static void examine_numbers(struct workbook *book, const char *text, const char *end)
{
    const char *first = find(text, end, "<cellXfs"), *last = first ? find(first, end, "</cellXfs") : NULL;
    int place = 0;
    book->is_odd |= first && !last;
    for (const char *at = last ? first : NULL; at && (at = memchr(at, '<', (size_t)(last - at))); at++) {
        struct tag format = tag_at(at, last, "<xf");
        if (format.end && place < MOST_PLACES && book->is_used[place++])
            examine_number(book, number_of(format, "numFmtId", 0), book->by_place[place - 1]);
    }
}

static void put_moments(const char *separator, struct moments moments)
{
    put("%s[%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld]", separator, (long long)moments.late, (long long)moments.named,
        (long long)moments.texts, (long long)moments.timed, (long long)moments.first_timed, (long long)moments.dated,
        (long long)moments.first_dated, (long long)moments.numbers, (long long)moments.first_number, (long long)moments.fewest_digits);
}

/* Whether the driver does not look up what the workbook defines under a number, other than amounts, which it need not know. */
static int is_ignored(int number)
{
    return number < 5 || (number > 8 && number < 14) || (number > 22 && number < 37) || (number > 47 && number < FIRST_OWN);
}

/* The codes of the formats that the workbook defines itself, if cells use them. */
static void tell_codes(struct workbook *book, const char *text, const char *end)
{
    int told = 0, order[MOST_NUMBERS];
    put(",\"codes\":[");
    for (const char *at = text; (at = find(at, end, "<numFmt")); at++) {
        struct tag format = tag_at(at, end, "<numFmt"), code = attribute(format, "formatCode");
        int number = number_of(format, "numFmtId", NO_NUMBER), known = place_of(book, number);
        if (begins(format.start, end, "s")) /* the element around them */
            continue;
        book->is_odd |= !format.end || !code.end || code.end - code.start > LONGEST_CODE || number == NO_NUMBER || told == MOST_NUMBERS;
        if (book->is_odd || known == book->number_count)
            continue;
        book->is_odd |= is_ignored(number) || book->is_own[known]; /* of several, the last one applies */
        char copy[LONGEST_CODE + 1] = "";
        memcpy(copy, code.start, (size_t)(code.end - code.start));
        book->is_own[known] = 1;
        order[told] = known;
        put(told++ ? "," : "");
        put_text(copy);
    }
    put("],\"built_in\":[");
    for (int number = 0, listed = 0; number < book->number_count; number++)
        if (!book->is_own[number] && told < MOST_NUMBERS) {
            put("%s%d", listed++ ? "," : "", book->numbers[number]);
            order[told++] = number;
        }
    put("],\"moments\":[");
    for (int number = 0; number < told; number++)
        put_moments(number ? "," : "", book->by_number[order[number]]);
    put("]");
}

static void tell_formats(struct workbook *book, const char *file)
{
    size_t size;
    char *text = text_of_part(file, "styles.xml", &size);
    book->is_odd |= !text;
    if (!book->is_odd)
        examine_numbers(book, text, text + size);
    if (!book->is_odd)
        tell_codes(book, text, text + size);
    free(text);
}

static void put_seen(const char *name, struct seen seen)
{
    put(",\"%s\":%lld,\"first_%s\":%lld", name, (long long)seen.count, name, (long long)seen.first);
}

/* Whether a sheet that is hidden has values is certain if all have, and that no text is empty if none is. */
static void tell_rows(struct workbook *book)
{
    struct rows_found found = rows_of_all(book->rows);
    put(",\"hidden_sheets\":%d,\"hidden_columns\":%lld", book->has_empty_sheet ? 0 : book->hidden_sheets,
        (long long)found.hidden_columns.count);
    put_seen("hidden_rows", found.hidden_rows);
    put_seen("blank_rows", found.blank_rows);
    put_seen("totals", found.totals);
    book->is_odd |= found.unlike > 0;
    put_seen("mixed", book->has_empty_text ? (struct seen){0, 0} : found.mixed);
}

void examine_workbook(const char *file)
{
    char path[LONGEST_PATH];
    struct workbook *book = calloc(1, sizeof *book);
    if (!book)
        _exit(1);
    book->rows = make_sheet_rows();
    refused = NULL;
    put("{\"ok\":true");
    examine_addresses(book, file);
    examine_days(book, file);
    learn_kinds(book, file);
    if (!book->is_odd)
        examine_sheets(book, file);
    snprintf(path, sizeof path, "/vsizip/%s/xl/sharedStrings.xml", file);
    if (!book->is_odd)
        examine_part(book, path); /* texts may be in their cells instead */
    if (!book->is_odd)
        tell_formats(book, file);
    put(",\"uncalculated\":%lld,\"escaped\":%lld,\"errors\":%lld,\"first_error\":%d", (long long)book->uncalculated,
        (long long)book->escaped, (long long)book->errors, book->first_error);
    put(",\"rounded\":%lld,\"first_rounded\":%d,\"truths\":%lld", (long long)book->rounded, book->first_rounded,
        (long long)book->truths);
    put(",\"merged\":%lld,\"first_merged\":%d", (long long)book->merged, book->first_merged);
    tell_rows(book);
    if (book->is_odd || refused) {
        take_back_answer();
        put("{\"ok\":false");
    }
    free(book->rows);
    free(book);
}
