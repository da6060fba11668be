/*
 * Counts what a result in KML holds, as its driver would: that keeps the whole document as objects, eight times as large as its
 * text, and takes longer to read it than another driver to write it. A document that is not built as those are which we write,
 * such as one with a folder within another, is left to the driver.
 */
#include <string.h>

#include "layer_counts.h"
#include "xml_parser.h"

enum { DEEPEST = 32, LONGEST_ELEMENT = 16 };

struct reading {
    char path[DEEPEST][LONGEST_ELEMENT]; /* the elements that are open */
    int depth, is_odd, has_position, in_position, commas;
    struct counted_column *column; /* that of the value that is read; NULL if none is */
    struct text_read text;
    struct found_layers folders;
    struct found_layer *folder; /* the one that is read */
};

static int is_in(const struct reading *reading, int above, const char *element)
{
    return reading->depth >= above && strcmp(reading->path[reading->depth - above], element) == 0;
}

/* Go on with the folder of a name, or that of a schema: it may be before or behind its folder. */
static void enter_folder(struct reading *reading, const char *name)
{
    reading->folder = layer_named(&reading->folders, name);
    column_named(reading->folder, "name");
    column_named(reading->folder, "description");
}

/* The column of an element below a feature; NULL if it holds none. */
static const char *column_in(const struct reading *reading, const char *element, const char **attributes)
{
    if (strcmp(element, "SimpleData") == 0)
        return value_in(attributes, "name");
    if (strcmp(element, "when") == 0 && is_in(reading, 1, "TimeStamp"))
        return "timestamp";
    if (is_in(reading, 1, "TimeSpan"))
        return element;
    return is_in(reading, 1, "Placemark") && (strcmp(element, "name") == 0 || strcmp(element, "description") == 0) ? element : NULL;
}

static void begin_element(void *context, const char *element, const char **attributes)
{
    struct reading *reading = context;
    int is_folder = strcmp(element, "Folder") == 0, is_feature = strcmp(element, "Placemark") == 0;
    const char *column = column_in(reading, element, attributes), *name = value_in(attributes, "name");
    reading->is_odd |= reading->depth == DEEPEST || reading->column || (is_folder && !is_in(reading, 1, "Document")) ||
                       ((is_feature || column) && !reading->folder) || (is_feature && !is_in(reading, 1, "Folder"));
    if (reading->is_odd)
        return;
    if (is_folder)
        reading->folder = NULL; /* until its name is known */
    else if (name && strcmp(element, "Schema") == 0)
        enter_folder(reading, name);
    else if (name && strcmp(element, "SimpleField") == 0 && reading->folder)
        column_named(reading->folder, name);
    else if (is_feature) {
        reading->folder->counted.features++;
        reading->has_position = 0;
    }
    strncpy(reading->path[reading->depth++], element, LONGEST_ELEMENT - 1);
    reading->in_position = strcmp(element, "coordinates") == 0 && reading->folder;
    reading->commas = 0;
    reading->text.size = 0;
    reading->column = column ? column_named(reading->folder, column) : NULL;
}

static void read_text(void *context, const char *text, int size)
{
    struct reading *reading = context;
    add_text(&reading->text, text, (size_t)size);
    for (int at = 0; reading->in_position && at < size; at++) {
        reading->has_position |= text[at] >= '0' && text[at] <= '9';
        reading->commas = text[at] == ',' ? reading->commas + 1 : text[at] == ' ' || text[at] == '\n' ? 0 : reading->commas;
        reading->folder->counted.has_z |= reading->commas == 2;
    }
}

static void end_element(void *context, const char *element)
{
    struct reading *reading = context;
    if (reading->is_odd)
        return;
    if (reading->column) {
        count_text(reading->column, reading->text.start, reading->text.size);
        reading->column = NULL;
    } else if (strcmp(element, "Placemark") == 0)
        reading->folder->counted.geometries += reading->has_position;
    else if (strcmp(element, "name") == 0 && is_in(reading, 2, "Folder")) {
        if ((reading->is_odd = !is_kept(&reading->text)))
            return;
        enter_folder(reading, reading->text.start);
    }
    reading->in_position = 0;
    reading->text.size = 0;
    memset(reading->path[--reading->depth], 0, LONGEST_ELEMENT);
}

int count_kml(const char *name)
{
    struct reading reading = {0};
    int is_counted = parse_xml(name, &reading, begin_element, end_element, read_text) && !reading.is_odd;
    if (is_counted)
        tell_found(&reading.folders);
    forget_found(&reading.folders);
    return is_counted;
}
