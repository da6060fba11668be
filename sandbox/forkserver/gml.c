/*
 * Counts what a result in GML holds, as its driver would, which reads all of it twice, at first for the types of its columns. What
 * is not built as results are which we write, is left to the driver.
 */
#include <string.h>

#include "layer_counts.h"
#include "xml_parser.h"

enum { MEMBER = 1, FEATURE, PROPERTY }; /* how many elements these are in */
enum { XY = 2, XYZ };
enum { BLANK = 1, NUMERIC };

static const unsigned char KINDS[256] = {
    [' '] = BLANK,   ['\n'] = BLANK,   ['\t'] = BLANK,   ['\r'] = BLANK,   ['0' ... '9'] = NUMERIC,
    ['+'] = NUMERIC, ['-'] = NUMERIC, ['.'] = NUMERIC, ['e'] = NUMERIC, ['E'] = NUMERIC,
};

struct reading {
    struct found_layers layers;
    struct found_layer *layer; /* that of the feature that is read */
    int depth, is_odd, is_member, is_null, latest;
    struct text_read text;
    int is_geometry, has_position, in_positions, dimensions, numbers, kind; /* `kind` of the last letter */
};

/* The name of a feature or a property without its prefix; NULL if the element is none. */
static const char *own_name(const char *element)
{
    return strncmp(element, "ogr:", strlen("ogr:")) == 0 ? element + strlen("ogr:") : NULL;
}

static void begin_geometry(struct reading *reading, const char *element, const char **attributes)
{
    const char *told = value_in(attributes, "srsDimension");
    reading->is_odd |= reading->in_positions || strncmp(element, "gml:", strlen("gml:")) != 0 ||
                       (told && strcmp(told, "2") != 0 && strcmp(told, "3") != 0);
    reading->is_geometry = 1;
    reading->in_positions = strcmp(element, "gml:pos") == 0 || strcmp(element, "gml:posList") == 0;
    reading->dimensions = !told ? reading->dimensions : *told == '3' ? XYZ : XY;
    reading->numbers = 0;
    reading->kind = BLANK;
}

static void begin_element(void *context, const char *element, const char **attributes)
{
    struct reading *reading = context;
    int depth = reading->depth++;
    if (depth == MEMBER) {
        reading->is_member = strcmp(element, "ogr:featureMember") == 0;
        reading->is_odd |= !reading->is_member && (strcmp(element, "gml:boundedBy") != 0 || reading->layers.count);
    }
    if (depth <= MEMBER || !reading->is_member || reading->is_odd)
        return;
    if (depth > PROPERTY)
        begin_geometry(reading, element, attributes);
    else if (!own_name(element))
        reading->is_odd = 1;
    else if (depth == FEATURE) {
        reading->layer = layer_named(&reading->layers, own_name(element));
        reading->layer->counted.features++;
        reading->latest = -1;
        reading->has_position = 0;
    } else {
        reading->is_null = value_in(attributes, "xsi:nil") != NULL;
        reading->text.size = 0;
        reading->is_geometry = 0;
        reading->dimensions = XY;
    }
}

static void read_text(void *context, const char *text, int size)
{
    struct reading *reading = context;
    int is_foreign = 0, numbers = 0, kind = reading->kind;
    if (!reading->is_member || reading->is_odd || reading->depth <= PROPERTY)
        return;
    if (!reading->is_geometry) {
        add_text(&reading->text, text, (size_t)size);
        return;
    }
    for (const char *at = text; at < text + size; at++) {
        int before = kind;
        kind = KINDS[(unsigned char)*at];
        is_foreign |= !kind;
        numbers += kind > before;
    }
    reading->kind = kind;
    reading->numbers += numbers;
    reading->is_odd |= is_foreign || (numbers && !reading->in_positions);
}

static void end_positions(struct reading *reading, int is_list)
{
    int is_high = is_list ? reading->dimensions == XYZ : reading->numbers == XYZ, size = is_high ? XYZ : XY;
    reading->is_odd |= is_list ? reading->numbers % size : reading->numbers && reading->numbers != size;
    reading->has_position |= reading->numbers > 0;
    reading->layer->counted.has_z |= reading->numbers > 0 && is_high;
    reading->in_positions = 0;
}

/* A property that follows itself is a list; the driver knows what becomes of it, and of a text that begins with blanks. It makes no
 * column of empty texts alone. */
static void end_value(struct reading *reading, const char *name)
{
    if (!reading->is_null && !reading->text.size)
        return;
    struct counted_column *column = column_named(reading->layer, name);
    int begins_blank = reading->text.size > 0 && KINDS[(unsigned char)*reading->text.start] == BLANK;
    reading->is_odd |= begins_blank || reading->layer->latest == reading->latest;
    reading->latest = reading->layer->latest;
    if (!reading->is_null)
        count_text(column, reading->text.start, reading->text.size);
}

static void end_element(void *context, const char *element)
{
    struct reading *reading = context;
    int depth = --reading->depth;
    if (!reading->is_member || reading->is_odd)
        return;
    if (depth > PROPERTY && reading->in_positions)
        end_positions(reading, strcmp(element, "gml:posList") == 0);
    else if (depth == PROPERTY && !reading->is_geometry)
        end_value(reading, own_name(element));
    else if (depth == FEATURE)
        reading->layer->counted.geometries += reading->has_position;
}

int count_gml(const char *name)
{
    struct reading reading = {0};
    int is_counted = parse_xml(name, &reading, begin_element, end_element, read_text) && !reading.is_odd;
    if (is_counted)
        tell_found(&reading.layers);
    forget_found(&reading.layers);
    return is_counted;
}
