/*
 * Counts what a result in GPX holds: its driver reads the whole file for each of five layers, once when it opens them and again
 * for their features.
 */
#include <string.h>

#include "answer.h"
#include "layer_counts.h"
#include "xml_parser.h"

struct reading {
    int has_points; /* of the route or track that is read */
    struct counted_layer layer;
};

static int is_one_of(const char *element, const char *first, const char *second)
{
    return strcmp(element, first) == 0 || strcmp(element, second) == 0;
}

static int is_position(const char *number)
{
    char *end;
    return number && (CPLStrtod(number, &end), end != number);
}

static void begin_element(void *context, const char *element, const char **attributes)
{
    struct reading *reading = context;
    int is_waypoint = strcmp(element, "wpt") == 0, is_path = is_one_of(element, "rte", "trk");
    if (is_waypoint || is_path)
        reading->layer.features++;
    if (is_path)
        reading->has_points = 0;
    if (is_waypoint || is_one_of(element, "rtept", "trkpt")) {
        int is_placed = is_position(value_in(attributes, "lat")) && is_position(value_in(attributes, "lon"));
        reading->layer.geometries += is_placed && (is_waypoint || !reading->has_points);
        reading->has_points |= is_placed;
    }
    reading->layer.has_z |= strcmp(element, "ele") == 0;
}

static void end_element(void *context, const char *element)
{
    (void)context, (void)element;
}

static void read_text(void *context, const char *text, int size)
{
    (void)context, (void)text, (void)size;
}

int count_gpx(const char *name)
{
    struct reading reading = {0};
    int is_counted = parse_xml(name, &reading, begin_element, end_element, read_text);
    if (is_counted)
        tell_counted("gpx", &reading.layer);
    return is_counted;
}
