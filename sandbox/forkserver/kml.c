/*
 * Counts what a result in KML holds, as its driver would: that keeps the whole document as objects, eight times as large as its
 * text, and takes longer to read it than another driver to write it. The text is parsed by the same library. A document that is
 * not built as those are which we write, such as one with a folder within another, is left to the driver.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "layer_counts.h"
#include "xml_parser.h"

enum { DEEPEST = 32, LONGEST_TEXT = 1024, LONGEST_ELEMENT = 16, MORE = 64 };

struct folder {
    char *name;
    struct counted_layer layer;
};

struct reading {
    char path[DEEPEST][LONGEST_ELEMENT]; /* the elements that are open */
    int depth, is_odd, has_position, in_position, commas;
    char *column, text[LONGEST_TEXT]; /* the column of the value that is read, NULL if none is, and its text */
    size_t text_size;
    struct folder *folders, *folder; /* all, and the one that is read */
    int count, latest;
};

static int is_in(const struct reading *reading, int above, const char *element)
{
    return reading->depth >= above && strcmp(reading->path[reading->depth - above], element) == 0;
}

/* Room for one more in an array that has `count` of them. */
static void *grown(void *array, int count, size_t size)
{
    if (count % MORE == 0 && !(array = realloc(array, (size_t)(count + MORE) * size)))
        _exit(1);
    return array;
}

static char *copy_of(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        _exit(1);
    return copy;
}

/* The column of a name, which is made if there is none. The search begins behind the one that was found last, for values follow
 * each other as their columns do. */
static struct counted_column *column_of(struct reading *reading, const char *name)
{
    struct counted_layer *layer = &reading->folder->layer;
    for (int tried = 1; tried <= layer->count; tried++) {
        int number = (reading->latest + tried) % layer->count;
        if (strcmp(layer->columns[number].name, name) == 0)
            return layer->columns + (reading->latest = number);
    }
    layer->columns = grown(layer->columns, layer->count, sizeof *layer->columns);
    reading->latest = layer->count++;
    layer->columns[reading->latest] = (struct counted_column){.name = copy_of(name)};
    return layer->columns + reading->latest;
}

/* Go on with the folder of a name, or that of a schema: it may be before or behind its folder. */
static void enter_folder(struct reading *reading, const char *name)
{
    reading->latest = 0;
    for (int number = 0; number < reading->count; number++)
        if (strcmp(reading->folders[number].name, name) == 0) {
            reading->folder = reading->folders + number;
            return;
        }
    reading->folders = grown(reading->folders, reading->count, sizeof *reading->folders);
    reading->folder = reading->folders + reading->count++;
    *reading->folder = (struct folder){.name = copy_of(name), .layer = {.counts_values = 1}};
    column_of(reading, "name");
    column_of(reading, "description");
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
        column_of(reading, name);
    else if (is_feature) {
        reading->folder->layer.features++;
        reading->has_position = 0;
    }
    strncpy(reading->path[reading->depth++], element, LONGEST_ELEMENT - 1);
    reading->in_position = strcmp(element, "coordinates") == 0 && reading->folder;
    reading->commas = 0;
    reading->text_size = 0;
    reading->column = column ? copy_of(column) : NULL;
}

static void read_text(void *context, const char *text, int size)
{
    struct reading *reading = context;
    if (reading->text_size < LONGEST_TEXT) {
        size_t room = LONGEST_TEXT - reading->text_size;
        memcpy(reading->text + reading->text_size, text, (size_t)size < room ? (size_t)size : room);
    }
    reading->text_size += (size_t)size;
    for (int at = 0; reading->in_position && at < size; at++) {
        reading->has_position |= text[at] >= '0' && text[at] <= '9';
        reading->commas = text[at] == ',' ? reading->commas + 1 : text[at] == ' ' || text[at] == '\n' ? 0 : reading->commas;
        reading->folder->layer.has_z |= reading->commas == 2;
    }
}

static void end_element(void *context, const char *element)
{
    struct reading *reading = context;
    if (reading->is_odd)
        return;
    if (reading->column) {
        count_text(column_of(reading, reading->column), reading->text, reading->text_size);
        free(reading->column);
        reading->column = NULL;
    } else if (strcmp(element, "Placemark") == 0)
        reading->folder->layer.geometries += reading->has_position;
    else if (strcmp(element, "name") == 0 && is_in(reading, 2, "Folder")) {
        if ((reading->is_odd = reading->text_size >= LONGEST_TEXT))
            return;
        reading->text[reading->text_size] = 0;
        enter_folder(reading, reading->text);
    }
    reading->in_position = 0;
    reading->text_size = 0;
    memset(reading->path[--reading->depth], 0, LONGEST_ELEMENT);
}

static void forget(const struct reading *reading)
{
    for (int number = 0; number < reading->count; number++) {
        struct folder *folder = reading->folders + number;
        for (int column = 0; column < folder->layer.count; column++)
            free((char *)folder->layer.columns[column].name);
        free(folder->layer.columns);
        free(folder->name);
    }
    free(reading->folders);
    free(reading->column);
}

int count_kml(const char *name)
{
    struct reading reading = {0};
    int is_counted = parse_xml(name, &reading, begin_element, end_element, read_text) && !reading.is_odd;
    for (int number = 0; is_counted && number < reading.count; number++) {
        put(number ? "," : "");
        tell_counted(reading.folders[number].name, &reading.folders[number].layer);
    }
    forget(&reading);
    return is_counted;
}
