/*
 * Examines a whole file of separated values before a driver reads it: its delimiter, its header row, and for each column
 * its type and how many of its cells are filled, numbers and geometries. The result is that of
 * service/engine/jailed/delimited.py, in a fraction of its time. If the two could differ (other encodings, unusual line
 * ends, digits of other scripts), the file counts as odd and is left to that program.
 *
 * Rows are split as Python's csv module splits them, and cells are matched as its regular expressions match them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "separated.h"

enum { MOST_CELLS = 2000, SAMPLE_ROWS = 30, SAMPLE_LINES = 120, SAMPLE_BYTES = 1 << 20, WKB_DIGITS = 18, UNSURE = 2 };
static const char DELIMITERS[] = ",;\t|", NUMBERISH[] = "0123456789+-.,:/eETZ \t\r\n", SPACE[] = " \t\r\n";

/* What cells look like. A column has the kinds of all its cells, and its type follows from them; see places.py. */
enum kind { TEXT = 1, WHOLE = 2, LONG = 4, DECIMAL = 8, COMMA = 16, GROUPED = 32, DAY = 64, MOMENT = 128, POINTED = 256 };
enum { WHOLE_DIGITS = 15, MOST_DIGITS = 18, GROUP = 3, MILLI = 3, YEAR_DIGITS = 4 };

struct cells {
    int kinds, is_pointed; /* whether points in it may separate thousands */
    int64_t filled, numbers, geometries, finer;
};

struct table {
    const char *start, *end; /* without a byte order mark */
    char delimiter;
    int is_odd, width, first_width, has_header, has_commas;
    const char *data; /* what follows the header */
    struct cells columns[MOST_CELLS];
};

/* A row: its cells as zero-terminated texts, one after the other. */
struct row {
    char *text, *cells[MOST_CELLS];
    size_t room;
    int count;
};

/* ---- bytes ---- */

/* The next character; -1 if the bytes are not UTF-8. */
static int32_t next_character(const unsigned char **at, const unsigned char *end)
{
    static const int32_t least[] = {0, 0x80, 0x800, 0x10000};
    unsigned char first = *(*at)++;
    int more = first < 0x80 ? 0 : first >> 5 == 6 ? 1 : first >> 4 == 14 ? 2 : first >> 3 == 30 ? 3 : -1;
    if (more <= 0)
        return more ? -1 : first;
    int32_t code = first & (0x3f >> more);
    for (int number = 0; number < more; number++, (*at)++) {
        if (*at == end || (**at & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (**at & 0x3f);
    }
    return code < least[more] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? -1 : code;
}

/* Whether programs could disagree about where lines end, or the text is in another encoding. */
static int has_odd_bytes(const char *start, const char *end)
{
    for (const unsigned char *at = (const unsigned char *)start, *last = (const unsigned char *)end; at < last;) {
        unsigned char first = *at;
        int is_control = first < ' ' && first != '\t' && first != '\n' && first != '\r';
        if (is_control || (first == '\r' && (at + 1 == last || at[1] != '\n')))
            return 1;
        int32_t code = next_character(&at, last);
        if (code < 0 || code == 0x85 || code == 0x2028 || code == 0x2029)
            return 1;
    }
    return 0;
}

/* Whether the first line may declare the delimiter, as some spreadsheet programs do. */
static int declares_delimiter(const char *start, const char *end)
{
    start += start < end && *start == '"';
    return end - start > 4 && strncasecmp(start, "sep=", 4) == 0;
}

static int is_odd_space(int32_t code)
{
    return code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

/* Whether a character may be a digit or white space of another script. */
static int is_odd_character(int32_t code)
{
    return is_odd_space(code) || (code >= 0x660 && code <= 0x1fff) || (code >= 0xa600 && code <= 0xabff) || code >= 0xff00;
}

static int is_ascii(const char *text)
{
    unsigned char all = 0;
    for (; *text; text++)
        all |= (unsigned char)*text;
    return all < 0x80;
}

/* Whether a cell may be a number, a date or a geometry written with characters outside ASCII. */
static int is_odd_cell(const char *text)
{
    int is_numberish = 1, is_odd = 0, is_first = 1;
    size_t size = strlen(text);
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    if (is_ascii(text))
        return text[size - 1] == '\n'; /* an expression may end before it */
    while (at < end) {
        int32_t code = next_character(&at, end);
        is_numberish &= code >= 0x80 || strchr(NUMBERISH, code) != NULL;
        is_odd |= is_odd_character(code);
        if (is_first && is_odd_space(code))
            return 1;
        is_first &= code < 0x80 && strchr(SPACE, code) != NULL;
    }
    return (is_odd && is_numberish) || text[size - 1] == '\n';
}

/* ---- cells ---- */

static int is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static const char *past_digits(const char *at)
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

static int is_number(const char *text)
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
        if (end == at + 1 || *past_exponent(end))
            return TEXT;
        int is_group = *text != '0' && digits && digits <= GROUP && end == at + 1 + GROUP && !*end;
        return *at == '.' ? (is_group ? POINTED : DECIMAL) : is_group ? GROUPED : COMMA;
    }
    end = past_exponent(at);
    return digits && end > at && !*end ? DECIMAL : TEXT;
}

/* The position after a match, or NULL. In a pattern, a digit matches digits up to it, / matches / and -. */
static const char *past_pattern(const char *at, const char *pattern)
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

int is_in_calendar(const char *day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    enum { MONTH_AT = 5, DAY_AT = 8, FEBRUARY = 2, MONTHS = 12 };
    int year = atoi(day), month = atoi(day + MONTH_AT), number = atoi(day + DAY_AT);
    int is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return year > 0 && month >= 1 && month <= MONTHS && number >= 1 &&
           number <= days[month - 1] + (month == FEBRUARY && is_leap);
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

/* Whether a moment has fractions of milliseconds. */
static int is_finer(const char *text)
{
    const char *point = strchr(text, '.'), *digits = point ? point + 1 : text;
    return point && past_digits(digits) > digits + MILLI && is_digit(digits[MILLI + strspn(digits + MILLI, "0")]);
}

/* Whether the comma or point of a number may separate thousands, whatever its sign, leading zeros and the space around it. */
static int may_be_grouped(const char *text, char separator)
{
    const char *at = past_space(text);
    at += *at == '-' || *at == '+';
    while (*at == '0' && is_digit(at[1]))
        at++;
    const char *middle = past_digits(at), *end = *middle == separator ? past_digits(middle + 1) : middle;
    return *at != '0' && middle > at && middle - at <= GROUP && end == middle + 1 + GROUP && !*past_space(end);
}

static enum kind kind_of(const char *text)
{
    enum kind number = number_kind(text);
    if (number != TEXT)
        return number;
    const char *rest = past_day(text);
    return !rest ? TEXT : !*rest ? DAY : is_moment(rest) ? MOMENT : TEXT;
}

static const char *type_of(const struct table *table, int kinds)
{
    int is_ambiguous = kinds & GROUPED && !(kinds & COMMA) && table->delimiter != ';';
    if (!kinds || is_ambiguous)
        return "String";
    if (!(kinds & ~DAY))
        return "Date";
    if (!(kinds & ~(DAY | MOMENT)))
        return "DateTime";
    if (!(kinds & ~(WHOLE | LONG)))
        return "Integer64";
    return kinds & ~(WHOLE | DECIMAL | POINTED | COMMA | GROUPED) ? "String" : "Real";
}

static int is_word(char letter)
{
    return is_digit(letter) || letter == '_' || (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z');
}

/* Whether the name of a type ends here, possibly with dimensions; UNSURE if a letter of another script follows. */
static int ends_type(const char *at)
{
    size_t dimensions = strncasecmp(at, "zm", 2) == 0 ? 2 : *at && strchr("zZmM", *at) ? 1 : 0;
    if (!is_word(*at))
        return *at & 0x80 ? UNSURE : 1;
    return dimensions && !is_word(at[dimensions]) ? (at[dimensions] & 0x80 ? UNSURE : 1) : 0;
}

static const char *past_word(const char *at, const char *word)
{
    size_t size = strlen(word);
    return (*at | ' ') == *word && strncasecmp(at, word, size) == 0 ? at + size : NULL; /* most differ at once */
}

/* Whether a cell begins like a geometry in WKT, or is one in WKB or GeoJSON; UNSURE if the other program must decide. */
static int is_geometry(const char *text)
{
    static const char *const simple[] = {"point", "linestring", "polygon", "curve", "surface"};
    static const char *const others[] = {"geometrycollection", "circularstring", "compoundcurve", "curvepolygon",
                                         "tin", "polyhedralsurface", "triangle"};
    const char *at = past_space(text), *rest;
    int ends;
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
        if ((rest = past_word(bare, simple[number])) && (ends = ends_type(rest)))
            return ends;
    for (size_t number = 0; number < sizeof others / sizeof *others; number++)
        if ((rest = past_word(at, others[number])) && (ends = ends_type(rest)))
            return ends;
    return 0;
}

/* ---- rows ---- */

static void end_cell(struct row *row, size_t *size, size_t *begun)
{
    row->text[(*size)++] = 0;
    if (row->count < MOST_CELLS)
        row->cells[row->count] = row->text + *begun;
    row->count++;
    *begun = *size;
}

/* Read the row that begins at `at`, and return where it ends. An empty line is a row without cells. */
static const char *next_row(const char *at, const char *end, char delimiter, struct row *row)
{
    enum { FIRST, PLAIN, QUOTED, AFTER_QUOTE } state = FIRST;
    size_t size = 0, begun = 0;
    row->count = 0;
    if (at < end && (*at == '\n' || *at == '\r'))
        return at + 1 + (*at == '\r');
    for (; at < end; at++) {
        char letter = *at;
        if (state == QUOTED) {
            if (letter == '"')
                state = AFTER_QUOTE;
            else
                row->text[size++] = letter;
        } else if (letter == '\n' || letter == '\r') {
            at += 1 + (letter == '\r');
            break;
        } else if (letter == delimiter) {
            end_cell(row, &size, &begun);
            state = FIRST;
        } else if (letter == '"' && state != PLAIN) {
            if (state == AFTER_QUOTE)
                row->text[size++] = letter;
            state = QUOTED;
        } else {
            row->text[size++] = letter;
            state = PLAIN;
        }
    }
    end_cell(row, &size, &begun);
    return at;
}

/* ---- the delimiter ---- */

static const char *end_of_sample(const struct table *table)
{
    const char *at = table->start, *end = table->end;
    if (end - at > SAMPLE_BYTES)
        end = at + SAMPLE_BYTES;
    for (int lines = 0; lines < SAMPLE_LINES; lines++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        if (!next)
            return end == table->end ? end : NULL;
        at = next + 1;
    }
    return at;
}

/* How well a delimiter fits the first rows; what comes first counts most. */
struct fit {
    int is_even; /* whether all rows have the same number of cells, more than one */
    int first;   /* the cells of the first row */
    int is_even_below; /* whether all others have, and the first may be their title, of several words; one is a name */
};

static struct fit fit_of(const struct table *table, const char *end, char delimiter, struct row *row)
{
    enum { FEWEST = 3 };
    int second = 0, is_even_below = 1, rows = 0, seen = 0, first = 0, may_be_title = 0;
    for (const char *at = table->start; at < end && rows < SAMPLE_ROWS; rows++) {
        at = next_row(at, end, delimiter, row);
        if (!row->count)
            continue;
        if (seen++ == 0) {
            first = row->count;
            may_be_title = strchr(row->cells[0], ' ') != NULL;
            continue;
        }
        second = second ? second : row->count;
        is_even_below &= row->count == second;
    }
    int is_even = is_even_below && first > 1 && (seen == 1 || second == first);
    return (struct fit){is_even, first, is_even_below && second > 1 && seen >= FEWEST && may_be_title};
}

static int is_better(struct fit one, struct fit other)
{
    if (one.is_even != other.is_even)
        return one.is_even > other.is_even;
    return one.first != other.first ? one.first > other.first : one.is_even_below > other.is_even_below;
}

/* The delimiter with which the first rows have the most columns, and all the same number, but for a title. */
static void find_delimiter(struct table *table, struct row *row)
{
    const char *end = end_of_sample(table);
    struct fit best = {-1, -1, -1};
    table->is_odd |= !end;
    for (const char *delimiter = DELIMITERS; end && *delimiter; delimiter++) {
        struct fit fit = fit_of(table, end, *delimiter, row);
        if (is_better(fit, best)) {
            best = fit;
            table->delimiter = *delimiter;
        }
    }
}

/* ---- the whole ---- */

static int is_year(const char *cell)
{
    return (*cell == '1' || *cell == '2') && past_digits(cell) == cell + YEAR_DIGITS && !cell[YEAR_DIGITS];
}

/* Whether the first row is data and not a header; if that is unclear, the table is odd. */
static int holds_data(struct table *table, const struct row *row)
{
    int found = 0, years = 0;
    for (int number = 0; number < row->count; number++) {
        const char *cell = row->cells[number];
        found += is_number(cell);
        years += is_year(cell);
        int may_be_value = strchr(cell, '(') || strcasestr(cell, "empty");
        table->is_odd |= *cell && (is_odd_cell(cell) || (may_be_value && is_geometry(cell)));
    }
    table->is_odd |= years > 1 && years == found; /* they may be names */
    return found > 0;
}

static void see_cell(struct table *table, struct cells *column, const char *cell)
{
    column->filled++;
    if (!(column->kinds & TEXT)) {
        enum kind kind = kind_of(cell);
        column->kinds |= (int)kind;
        column->finer += kind == MOMENT && is_finer(cell);
    }
    int number = is_number(cell), geometry = is_geometry(cell);
    column->numbers += number;
    column->geometries += geometry;
    table->is_odd |= geometry == UNSURE || (number && geometry) || is_odd_cell(cell);
    if (table->delimiter == ';') {
        table->has_commas |= number && strchr(cell, ',');
        column->is_pointed |= number && may_be_grouped(cell, '.');
    } else
        table->is_odd |= may_be_grouped(cell, ',');
}

static void see_row(struct table *table, const struct row *row)
{
    int last = row->count;
    while (last > table->width && !*row->cells[last - 1])
        last--;
    if (last > table->width)
        table->width = row->count;
    for (int number = 0; number < last; number++)
        if (*row->cells[number])
            see_cell(table, table->columns + number, row->cells[number]);
}

static void tell_columns(const struct table *table)
{
    put(",\"columns\":[");
    for (int number = 0; number < table->width; number++) {
        const struct cells *column = table->columns + number;
        put("%s{\"filled\":%lld,\"numbers\":%lld,\"geometries\":%lld,\"finer\":%lld,\"type\":\"%s\"}", number ? "," : "",
            (long long)column->filled, (long long)column->numbers, (long long)column->geometries,
            (long long)column->finer, type_of(table, column->kinds));
    }
    put("]");
}

/* The first row that is not empty, as a header or as data. */
static const char *take_header(struct table *table, struct row *row)
{
    const char *at = table->start;
    for (row->count = 0; at < table->end && !row->count;)
        at = next_row(at, table->end, table->delimiter, row);
    table->is_odd |= !row->count || row->count > MOST_CELLS;
    if (table->is_odd)
        return table->end;
    table->width = table->first_width = row->count;
    table->has_header = !holds_data(table, row);
    table->data = table->has_header ? at : table->start;
    put(",\"header\":[");
    for (int number = 0; table->has_header && number < row->count; number++) {
        put(number ? "," : "");
        put_text(row->cells[number]);
    }
    put("]");
    if (!table->has_header)
        see_row(table, row);
    return at;
}

/* Whether some points may separate thousands, since other numbers have decimal commas. */
static int has_odd_points(const struct table *table)
{
    int is_pointed = 0;
    for (int number = 0; number < table->width; number++)
        is_pointed |= table->columns[number].is_pointed && !(table->columns[number].kinds & DECIMAL);
    return is_pointed && table->has_commas;
}

static void look(struct table *table)
{
    struct row row = {.text = malloc((size_t)(table->end - table->start) + 1 + MOST_CELLS)};
    const char *at = table->end;
    if (!row.text)
        _exit(1);
    if (!table->delimiter)
        find_delimiter(table, &row);
    if (!table->is_odd)
        at = take_header(table, &row);
    while (at < table->end && !table->is_odd) {
        at = next_row(at, table->end, table->delimiter, &row);
        table->is_odd |= row.count > MOST_CELLS;
        if (!table->is_odd)
            see_row(table, &row);
    }
    table->is_odd = table->is_odd || has_odd_points(table);
    free(row.text);
}

static const char *map_file(const char *file, size_t *size)
{
    struct stat found;
    int opened = open(file, O_RDONLY | O_CLOEXEC);
    const char *mapped = NULL;
    if (opened >= 0 && fstat(opened, &found) == 0 && found.st_size > 0) {
        *size = (size_t)found.st_size;
        mapped = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, opened, 0);
    }
    close(opened);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void look_at_separated(const char *file, const char *known)
{
    size_t size = 0;
    const char *start = map_file(file, &size);
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        _exit(1);
    put("{\"ok\":true");
    if (start) {
        size_t mark = size >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        *table = (struct table){.start = start + mark, .end = start + size, .delimiter = *known};
        table->is_odd = has_odd_bytes(table->start, table->end) || declares_delimiter(table->start, table->end);
    }
    table->is_odd |= !start;
    if (!table->is_odd)
        look(table);
    if (table->is_odd) {
        take_back_answer();
        put("{\"ok\":false");
    } else {
        tell_columns(table);
        put(",\"width\":%d,\"data_at\":%zu,\"delimiter\":", table->first_width, (size_t)(table->data - start));
        put_text((char[]){table->delimiter, 0});
    }
    if (start)
        munmap((void *)start, size);
    free(table);
}

/* ---- writing ---- */

static int write_whole(int file, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(file, bytes, size);
        if (written <= 0)
            return 0;
        bytes += written;
        size -= (size_t)written;
    }
    return 1;
}

static int create(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

int write_text(const char *path, const char *text)
{
    int file = create(path);
    int ok = file >= 0 && write_whole(file, text, strlen(text));
    return close(file) == 0 && ok;
}

int copy_under_header(const char *file, const char *copy, size_t skipped, const char *header)
{
    size_t size = 0;
    const char *start = map_file(file, &size);
    int made = create(copy), ok = start && made >= 0 && skipped <= size && write_whole(made, header, strlen(header)) &&
                              write_whole(made, start + skipped, size - skipped);
    if (start)
        munmap((void *)start, size);
    return close(made) == 0 && ok;
}
