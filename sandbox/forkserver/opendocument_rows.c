/*
 * Finds rows without values and texts in columns of numbers in an ODS workbook. The rules for cells are those of
 * service/engine/jailed/opendocument_rows.py, which counts them, and what is hidden.
 */
#include "opendocument_rows.h"

enum { MOST_COUNTED = 2000, MOST_ROWS = 1 << 30 };

/* How often something in `place` repeats, so that the next one is at most at `most`. */
static int times_of(struct tag tag, const char *name, int place, int most)
{
    int times = find(tag.start, tag.end, "repeated") ? number_of(tag, name, 1) : 1;
    return times < most - place ? times : most - place;
}

/* The tag with exactly this name at `at`; its end is NULL if it is another one. */
static struct tag named(const char *at, const char *end, const char *name)
{
    struct tag tag = tag_at(at, end, name);
    if (tag.end && *tag.start == '-')
        tag.end = NULL;
    return tag;
}

/* Whether nothing but empty paragraphs is between `at` and the end of a cell. */
static int shows_nothing(const char *at, const char *end)
{
    static const char EMPTY[] = "<text:p/>", OPEN[] = "<text:p>", CLOSE[] = "</text:p>";
    for (;;) {
        at = past_blanks(at, end);
        if (begins(at, end, EMPTY)) {
            at += sizeof EMPTY - 1;
            continue;
        }
        const char *closed = begins(at, end, OPEN) ? past_blanks(at + sizeof OPEN - 1, end) : at;
        if (closed == at || !begins(closed, end, CLOSE))
            return begins(at, end, "</table:");
        at = closed + sizeof CLOSE - 1;
    }
}

/* Whether a cell says in its tag that it holds a text. */
static int holds_string(struct tag cell)
{
    struct tag said = {0};
    if (find(cell.start, cell.end, "string-value"))
        said = attribute(cell, "office:string-value");
    return said.end && said.end > said.start;
}

static void examine_cell(struct sheet_rows *rows, struct ods_place *place, struct tag cell, const char *end)
{
    struct tag type = attribute(cell, "office:value-type");
    const char *content = cell.end + 1;
    int first = place->column, has_value = 1;
    int is_text = !type.end || begins(type.start, type.end, "string");
    int is_truth = !is_text && (begins(type.start, type.end, "boolean") || find(cell.start, cell.end, "\"of:=TRUE()") ||
                                find(cell.start, cell.end, "\"of:=FALSE()"));
    if (is_text && !holds_string(cell)) {
        int is_shown = type.end || begins(past_blanks(content, end), end, "<text:p");
        has_value = is_shown && cell.end[-1] != '/' && !shows_nothing(content, end);
    }
    enum cell_kind of_moment = begins(type.start, type.end, "date")   ? IS_MOMENT
                               : begins(type.start, type.end, "time") ? IS_CLOCK
                                                                      : IS_NUMBER;
    enum cell_kind kind = is_text ? IS_TEXT : is_truth ? IS_TRUTH : of_moment;
    place->column += times_of(cell, "table:number-columns-repeated", first, MOST_COUNTED);
    for (int column = first; has_value && column < place->column; column++)
        add_cell(rows, column + 1, kind);
}

void examine_ods_rows(struct sheet_rows *rows, struct ods_place *place, const char *at, const char *end)
{
    for (struct tag tag; (at = find(at, end, "<table:")); at++) {
        if ((tag = named(at, end, "<table:table-cell")).end)
            examine_cell(rows, place, tag, end);
        else if ((tag = named(at, end, "<table:covered-table-cell")).end)
            place->column += times_of(tag, "table:number-columns-repeated", place->column, MOST_COUNTED);
        else if ((tag = named(at, end, "<table:table-row")).end) {
            place->row += place->row ? place->times : 1;
            place->times = times_of(tag, "table:number-rows-repeated", place->row, MOST_ROWS);
            place->column = 0;
            begin_row_of(rows, place->row, place->times, 0);
        } else if (named(at, end, "<table:table").end) {
            *place = (struct ods_place){0, 0, 0};
            begin_sheet_rows(rows);
        }
    }
}
