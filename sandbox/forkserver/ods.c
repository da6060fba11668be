/*
 * Counts what a result in ODS holds, as its driver would, which makes a feature of each row. What is not built as workbooks are
 * which we write is left to the driver, and rows without values at the end of a sheet, which it does not find. So is a document
 * with so much in its cells that the driver may stop reading: it tells how much of it programs like it read.
 */
#include <stdio.h>
#include <string.h>

#include "xml_parser.h"
#include "sheets.h"

/* The driver reads 10 MiB of cells, and counts a short one as 16 bytes and the last one of a row twice. */
enum { LONGEST_PATH = 512, MOST_EMPTY_ROWS = 1000, SHORT_CELL = 16, LONGEST_TIME = 24, MOST_BYTES = 9 << 20 };

struct document {
    int is_odd, is_in_sheet, is_text, column;
    struct found_layers layers;
    struct sheet sheet;
    struct text_read text;
    enum cell kind;
    size_t cell_bytes, bytes; /* of the last cell, and of all */
};

static int is_one_of(const char *text, const char *first, const char *second)
{
    return strcmp(text, first) == 0 || strcmp(text, second) == 0;
}

/* A cell of a Boolean has a formula; any other formula, and what stands for several cells, is odd. */
static void begin_cell(struct document *document, const char **attributes)
{
    const char *formula = value_in(attributes, "table:formula"), *type = value_in(attributes, "office:value-type");
    const char *value = value_in(attributes, "office:value");
    int is_number = type && strcmp(type, "float") == 0 && value, is_text = type && strcmp(type, "string") == 0;
    document->is_odd |= (formula && (!is_number || !is_one_of(formula, "of:=TRUE()", "of:=FALSE()"))) ||
                        value_in(attributes, "table:number-columns-repeated") ||
                        (type && !is_number && !is_text && !is_one_of(type, "date", "time"));
    document->kind = is_text ? TEXT : is_number && !formula ? NUMBER : OTHER;
    document->text.size = 0;
    if (is_number)
        add_text(&document->text, value, strlen(value));
    else if (type && !is_text)
        add_text(&document->text, type, 1);
}

static void begin_element(void *context, const char *element, const char **attributes)
{
    struct document *document = context;
    const char *name = value_in(attributes, "table:name");
    document->is_text = 0;
    if (document->is_odd)
        return;
    if (strcmp(element, "table:table") == 0) {
        document->is_odd = document->is_in_sheet || !name;
        document->is_in_sheet = 1;
        if (name)
            begin_sheet(&document->sheet, layer_named(&document->layers, name));
    } else if (!document->is_in_sheet)
        return;
    else if (strcmp(element, "table:table-row") == 0) {
        document->is_odd |= value_in(attributes, "table:number-rows-repeated") || document->sheet.empty_rows > MOST_EMPTY_ROWS;
        begin_row(&document->sheet);
        document->column = 0;
    } else if (strcmp(element, "table:table-cell") == 0)
        begin_cell(document, attributes);
    else if (strcmp(element, "text:p") == 0)
        document->is_text = document->kind == TEXT;
    else
        document->is_odd = strcmp(element, "table:table-column") != 0;
}

static void read_text(void *context, const char *text, int size)
{
    struct document *document = context;
    if (document->is_text)
        add_text(&document->text, text, (size_t)size);
}

static void end_cell(struct document *document)
{
    size_t least = document->kind == OTHER ? LONGEST_TIME : SHORT_CELL;
    document->cell_bytes = document->text.size > least ? document->text.size : least;
    document->bytes += document->cell_bytes;
    count_cell(&document->sheet, document->column++, document->kind, &document->text);
}

static void end_element(void *context, const char *element)
{
    struct document *document = context;
    document->is_text = 0;
    if (!document->is_in_sheet || document->is_odd)
        return;
    if (strcmp(element, "table:table-cell") == 0)
        end_cell(document);
    else if (strcmp(element, "table:table-row") == 0) {
        document->bytes += document->cell_bytes;
        document->is_odd = document->bytes > MOST_BYTES;
    } else if (strcmp(element, "table:table") == 0) {
        document->is_in_sheet = 0;
        document->is_odd = document->sheet.is_odd || (document->sheet.rows > 1 && document->sheet.empty_rows);
    }
}

int count_ods(const char *name)
{
    char path[LONGEST_PATH];
    struct document document = {0};
    int is_counted = snprintf(path, sizeof path, "/vsizip/%s/content.xml", name) < (int)sizeof path &&
                     parse_xml(path, &document, begin_element, end_element, read_text) && !document.is_odd;
    if (is_counted)
        tell_found(&document.layers);
    forget_found(&document.layers);
    return is_counted;
}
