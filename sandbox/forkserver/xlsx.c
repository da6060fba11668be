/*
 * Counts what a result in XLSX holds, as its driver would, which makes a feature of each row. What is not built as workbooks are
 * which we write, such as rows of which one is left out, is left to the driver.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xml_parser.h"
#include "sheets.h"

enum { LONGEST_PATH = 512, LONGEST_KEPT = 64, MOST_HEADINGS = 1 << 14, MORE = 1 << 20, LETTERS = 26 };

/* The texts of all cells, one behind the other. Of the first ones, which are headings, as much is kept as of any text that is
 * read; of the others, as much as a number may have. */
struct texts {
    char *all;
    size_t size, room, *starts; /* in all and of all; where each starts */
    unsigned long count, most;
};

struct workbook {
    int is_odd, sheets, parts, has_texts; /* how many are listed, and of how many it is said where they are */
    struct found_layers layers;
    struct texts texts;
    struct text_read text;
    struct sheet sheet;
    int is_in_rows, is_value, is_shared, column;
    enum cell kind;
};

static void *grown(void *array, size_t size)
{
    if (!(array = realloc(array, size)))
        _exit(1);
    return array;
}

static void keep_text(struct texts *texts, const struct text_read *text)
{
    size_t most = texts->count < MOST_HEADINGS ? LONGEST_TEXT : LONGEST_KEPT, kept = text->size < most ? text->size : most;
    if (texts->size + kept > texts->room)
        texts->all = grown(texts->all, texts->room += MORE);
    if (texts->count == texts->most) {
        texts->most += MORE / sizeof *texts->starts;
        texts->starts = grown(texts->starts, texts->most * sizeof *texts->starts);
    }
    memcpy(texts->all + texts->size, text->start, kept);
    texts->starts[texts->count++] = texts->size;
    texts->size += kept;
}

/* Put the text of a number in place of that number; 0 if there is none. */
static int take_shared(const struct texts *texts, struct text_read *text)
{
    char *end = text->start;
    unsigned long number = is_kept(text) ? strtoul(text->start, &end, 10) : 0;
    if (end == text->start || *end || number >= texts->count)
        return 0;
    size_t start = texts->starts[number], kept = (number + 1 < texts->count ? texts->starts[number + 1] : texts->size) - start;
    text->size = 0;
    add_text(text, texts->all + start, kept);
    if (kept == (number < MOST_HEADINGS ? LONGEST_TEXT : LONGEST_KEPT))
        text->size = LONGEST_TEXT + 1; /* there may be more of it */
    return 1;
}

/* Whether a text is a number between two others. */
static int is_numbered(const char *text, const char *before, int number, const char *behind)
{
    char expected[LONGEST_PATH];
    snprintf(expected, sizeof expected, "%s%d%s", before, number, behind);
    return text && strcmp(text, expected) == 0;
}

static void begin_listed(void *context, const char *element, const char **attributes)
{
    struct workbook *book = context;
    if (strcmp(element, "sheet") != 0)
        return;
    const char *name = value_in(attributes, "name");
    book->is_odd |= !name || !is_numbered(value_in(attributes, "r:id"), "rId", ++book->sheets + 1, "");
    if (name)
        layer_named(&book->layers, name);
}

static void begin_part(void *context, const char *element, const char **attributes)
{
    struct workbook *book = context;
    const char *type = value_in(attributes, "Type"), *kind = type ? strrchr(type, '/') : NULL;
    if (strcmp(element, "Relationship") != 0 || !kind)
        return;
    book->has_texts |= strcmp(kind, "/sharedStrings") == 0;
    if (strcmp(kind, "/worksheet") == 0) {
        int number = ++book->parts;
        book->is_odd |= !is_numbered(value_in(attributes, "Id"), "rId", number + 1, "") ||
                        !is_numbered(value_in(attributes, "Target"), "worksheets/sheet", number, ".xml");
    }
}

static void begin_shared(void *context, const char *element, const char **attributes)
{
    struct workbook *book = context;
    (void)attributes;
    if (strcmp(element, "si") == 0)
        book->text.size = 0;
    book->is_value = strcmp(element, "t") == 0;
    book->is_odd |= !book->is_value && strcmp(element, "si") != 0 && strcmp(element, "sst") != 0;
}

/* The column of a cell in a row, from 0, such as 27 of AB7; -1 if it is in another row. */
static int column_in(const char *cell, int64_t row)
{
    char *end;
    int column = 0;
    for (; cell && *cell >= 'A' && *cell <= 'Z' && column < 1 << 16; cell++)
        column = column * LETTERS + *cell - 'A' + 1;
    return cell && strtoll(cell, &end, 10) == row && !*end ? column - 1 : -1;
}

static void begin_cell(struct workbook *book, const char **attributes)
{
    const char *type = value_in(attributes, "t"), *style = value_in(attributes, "s");
    book->column = column_in(value_in(attributes, "r"), book->sheet.rows);
    book->is_shared = type && strcmp(type, "s") == 0;
    book->kind = book->is_shared ? TEXT : type || (style && strcmp(style, "0") != 0) ? OTHER : NUMBER;
    book->is_odd |= book->column < 0 || (type && !book->is_shared && strcmp(type, "b") != 0);
    book->text.size = 0;
}

static void begin_in_sheet(void *context, const char *element, const char **attributes)
{
    struct workbook *book = context;
    book->is_value = 0;
    if (strcmp(element, "c") == 0)
        begin_cell(book, attributes);
    else if (strcmp(element, "v") == 0)
        book->is_value = 1;
    else if (strcmp(element, "row") == 0) {
        begin_row(&book->sheet);
        book->is_odd |= !is_numbered(value_in(attributes, "r"), "", (int)book->sheet.rows, "");
    } else
        book->is_odd |= book->is_in_rows;
    book->is_in_rows |= strcmp(element, "sheetData") == 0;
}

static void read_text(void *context, const char *text, int size)
{
    struct workbook *book = context;
    if (book->is_value)
        add_text(&book->text, text, (size_t)size);
}

static void end_shared(void *context, const char *element)
{
    struct workbook *book = context;
    book->is_value = 0;
    if (strcmp(element, "si") == 0)
        keep_text(&book->texts, &book->text);
}

static void end_in_sheet(void *context, const char *element)
{
    struct workbook *book = context;
    book->is_value = 0;
    if (strcmp(element, "sheetData") == 0)
        book->is_in_rows = 0;
    if (strcmp(element, "c") != 0 || book->is_odd)
        return;
    if (book->is_shared && !take_shared(&book->texts, &book->text))
        book->is_odd = 1;
    else
        count_cell(&book->sheet, book->column, book->kind, &book->text);
}

static void end_of_none(void *context, const char *element)
{
    (void)context, (void)element;
}

/* Parse a part of a workbook; 0 if it is missing or odd. */
static int parse_part(struct workbook *book, const char *name, const char *part, begin_call *begin, end_call *end)
{
    char path[LONGEST_PATH];
    if (snprintf(path, sizeof path, "/vsizip/%s/xl/%s", name, part) >= (int)sizeof path)
        return 0;
    return parse_xml(path, book, begin, end, read_text) && !book->is_odd;
}

static int parse_workbook(struct workbook *book, const char *name)
{
    char part[LONGEST_PATH];
    int is_parsed = parse_part(book, name, "workbook.xml", begin_listed, end_of_none) &&
                    parse_part(book, name, "_rels/workbook.xml.rels", begin_part, end_of_none) &&
                    book->sheets == book->parts && book->sheets == book->layers.count &&
                    (!book->has_texts || parse_part(book, name, "sharedStrings.xml", begin_shared, end_shared));
    for (int number = 0; is_parsed && number < book->sheets; number++) {
        snprintf(part, sizeof part, "worksheets/sheet%d.xml", number + 1);
        begin_sheet(&book->sheet, book->layers.all + number);
        is_parsed = parse_part(book, name, part, begin_in_sheet, end_in_sheet) && !book->sheet.is_odd;
    }
    return is_parsed;
}

int count_xlsx(const char *name)
{
    struct workbook book = {0};
    int is_counted = parse_workbook(&book, name);
    if (is_counted)
        tell_found(&book.layers);
    forget_found(&book.layers);
    free(book.texts.all);
    free(book.texts.starts);
    return is_counted;
}
