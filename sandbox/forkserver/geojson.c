/*
 * Counts what a result in GeoJSON holds, document or sequence, from its text and with none of the code that wrote it: the
 * features, their geometries, whether any has elevations, and for each property the values that are not null. A file that
 * is no JSON, or holds more than is expected of a result, is left to another program.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "geojson.h"
#include "mapped_file.h"
#include "utf_8.h"

enum { MOST_PROPERTIES = 4000, DEEPEST = 64, XY = 2, CHECKED_AT_ONCE = 1 << 20 };

/* A text of JSON as it is written, without its quotation marks. */
struct text {
    const char *start;
    size_t size;
};

struct property {
    struct text name;
    int64_t filled;
};

struct tally {
    struct mapped file;
    const char *at, *end, *checked;
    int is_broken, has_z, count, expected;
    int64_t features, geometries, positions, ids_alone;
    int has_id_column, ids_make_column, ids_are_numbers;
    struct property properties[MOST_PROPERTIES];
};

/* Where a text ends or may go on after a backslash: one look at each other byte is enough. */
static const unsigned char IS_SPECIAL[256] = {[0 ... ' ' - 1] = 1, ['"'] = 1, ['\\'] = 1};

static void take_value(struct tally *tally, int depth, int is_geometry);

static void skip_space(struct tally *tally)
{
    while (tally->at < tally->end && (*tally->at == ' ' || *tally->at == '\n' || *tally->at == '\r' || *tally->at == '\t'))
        tally->at++;
}

/* Whether `letter` is next; it is taken then. */
static int takes(struct tally *tally, char letter)
{
    skip_space(tally);
    int is_next = tally->at < tally->end && *tally->at == letter;
    tally->at += is_next;
    return is_next;
}

static void need(struct tally *tally, char letter)
{
    tally->is_broken |= !takes(tally, letter);
}

static struct text take_text(struct tally *tally)
{
    need(tally, '"');
    const char *start = tally->at, *end = tally->end, *at = start;
    for (; at < end; at += *at == '\\' && at + 1 < end ? 2 : 1) {
        while (at < end && !IS_SPECIAL[(unsigned char)*at])
            at++;
        if (at >= end || *at != '\\')
            break;
    }
    tally->is_broken |= at >= end || *at != '"';
    tally->at = at + !tally->is_broken;
    return (struct text){.start = start, .size = (size_t)(at - start)};
}

static int is_text(const struct text *text, const char *other)
{
    return text->size == strlen(other) && memcmp(text->start, other, text->size) == 0;
}

static void take_digits(struct tally *tally)
{
    const char *at = tally->at;
    while (at < tally->end && *at >= '0' && *at <= '9')
        at++;
    tally->is_broken |= at == tally->at;
    tally->at = at;
}

static int takes_at_once(struct tally *tally, char letter, char other)
{
    int is_next = tally->at < tally->end && (*tally->at == letter || *tally->at == other);
    tally->at += is_next;
    return is_next;
}

static void take_number(struct tally *tally)
{
    takes_at_once(tally, '-', '-');
    take_digits(tally);
    if (takes_at_once(tally, '.', '.'))
        take_digits(tally);
    if (takes_at_once(tally, 'e', 'E')) {
        takes_at_once(tally, '-', '+');
        take_digits(tally);
    }
}

/* Whether a word is next; it is taken then. */
static int takes_word(struct tally *tally, const char *word)
{
    size_t size = strlen(word);
    int is_next = (size_t)(tally->end - tally->at) >= size && memcmp(tally->at, word, size) == 0;
    tally->at += is_next ? size : 0;
    return is_next;
}

/* Values that commas part, up to a bracket; in a geometry, numbers side by side are a position. */
static void take_array(struct tally *tally, int depth, int is_geometry)
{
    int values = 0, numbers = 0;
    need(tally, '[');
    if (takes(tally, ']'))
        return;
    do {
        skip_space(tally);
        numbers += tally->at < tally->end && (*tally->at == '-' || (*tally->at >= '0' && *tally->at <= '9'));
        take_value(tally, depth + 1, is_geometry);
        values++;
    } while (!tally->is_broken && takes(tally, ','));
    need(tally, ']');
    int is_position = is_geometry && numbers == values;
    tally->positions += is_position;
    tally->has_z |= is_position && values > XY;
}

static void take_object(struct tally *tally, int depth, int is_geometry)
{
    need(tally, '{');
    if (takes(tally, '}'))
        return;
    do {
        take_text(tally);
        need(tally, ':');
        take_value(tally, depth + 1, is_geometry);
    } while (!tally->is_broken && takes(tally, ','));
    need(tally, '}');
}

static void take_value(struct tally *tally, int depth, int is_geometry)
{
    skip_space(tally);
    char first = tally->at < tally->end ? *tally->at : 0;
    if (tally->is_broken || depth > DEEPEST)
        tally->is_broken = 1;
    else if (first == '{')
        take_object(tally, depth, is_geometry);
    else if (first == '[')
        take_array(tally, depth, is_geometry);
    else if (first == '"')
        take_text(tally);
    else if (!takes_word(tally, "null") && !takes_word(tally, "true") && !takes_word(tally, "false"))
        take_number(tally);
}

/* The property of a name; most features have the same in the same order. */
static struct property *property_of(struct tally *tally, const struct text *name)
{
    for (int number = 0; number < tally->count; number++) {
        struct property *property = tally->properties + (tally->expected + number) % tally->count;
        if (property->name.size == name->size && memcmp(property->name.start, name->start, name->size) == 0) {
            tally->expected = (int)(property - tally->properties) + 1;
            return property;
        }
    }
    if (tally->count == MOST_PROPERTIES) {
        tally->is_broken = 1;
        return tally->properties;
    }
    tally->properties[tally->count] = (struct property){.name = *name};
    tally->expected = tally->count + 1;
    return tally->properties + tally->count++;
}

enum { NO_ID, EMPTY_ID, FILLED_ID };

/* Count the values of the properties of a feature; whether one of them is called id, and is filled. */
static int take_properties(struct tally *tally)
{
    int id = NO_ID;
    tally->expected = 0;
    skip_space(tally);
    if (takes_word(tally, "null"))
        return id;
    need(tally, '{');
    if (takes(tally, '}'))
        return id;
    do {
        skip_space(tally);
        struct text name = take_text(tally);
        if (tally->is_broken)
            return id;
        struct property *property = property_of(tally, &name);
        need(tally, ':');
        skip_space(tally);
        int is_filled = !takes_word(tally, "null");
        if (is_filled) {
            property->filled++;
            take_value(tally, 2, 0);
        }
        if (is_text(&name, "id"))
            id = is_filled ? FILLED_ID : EMPTY_ID;
    } while (!tally->is_broken && takes(tally, ','));
    need(tally, '}');
    return id;
}

/* Count the id of a feature, which may be a value of a column, as `service/geojson/ids.py` does. */
static void note_id(struct tally *tally, const struct text *id, int among_properties)
{
    if (id->size && !tally->has_id_column) {
        size_t digits = 0;
        while (digits < id->size && id->start[digits] >= '0' && id->start[digits] <= '9')
            digits++;
        if (digits == id->size)
            tally->ids_are_numbers = 1;
        else if (id->start[0] == '-')
            tally->ids_are_numbers = 0;
        if (!tally->ids_are_numbers && among_properties != FILLED_ID)
            tally->ids_make_column = tally->has_id_column = 1;
    }
    tally->has_id_column |= among_properties != NO_ID;
    tally->ids_alone += id->size && among_properties == NO_ID;
}

/* Add the ids that are values of a column; whether they are depends on types that another program knows, if there is one. */
static void add_ids(struct tally *tally)
{
    if (!tally->ids_alone || tally->ids_are_numbers)
        return;
    tally->is_broken |= !tally->ids_make_column;
    struct text name = {.start = "id", .size = 2};
    property_of(tally, &name)->filled += tally->ids_alone;
}

/* Whether a geometry has a position: one without any counts as missing, as it does where results are expected. */
static int take_geometry(struct tally *tally)
{
    int64_t before = tally->positions;
    take_value(tally, 2, 1);
    return tally->positions > before;
}

/* Check the encoding of what was read since the last time, up to the end of a feature. */
static void check_text(struct tally *tally)
{
    tally->is_broken |= !is_utf_8(tally->checked, (size_t)(tally->at - tally->checked));
    tally->checked = tally->at;
    pass(&tally->file, tally->at);
}

/* A feature, or a collection of features, which has others in it. */
static void take_feature(struct tally *tally, int is_inside)
{
    int is_feature = 0, has_geometry = 0, property = NO_ID;
    struct text id = {.size = 0};
    need(tally, '{');
    do {
        struct text name = take_text(tally);
        need(tally, ':');
        if (tally->is_broken)
            return;
        if (is_text(&name, "type")) {
            struct text type = take_text(tally);
            is_feature = is_text(&type, "Feature");
        } else if (is_text(&name, "properties"))
            property = take_properties(tally);
        else if (is_text(&name, "id")) {
            skip_space(tally);
            id.start = tally->at;
            if (!takes_word(tally, "null")) {
                take_value(tally, 1, 0);
                id.size = (size_t)(tally->at - id.start);
            }
        } else if (is_text(&name, "geometry"))
            has_geometry = take_geometry(tally);
        else if (is_text(&name, "features") && !is_inside) {
            need(tally, '[');
            if (!takes(tally, ']')) {
                do
                    take_feature(tally, 1);
                while (!tally->is_broken && takes(tally, ','));
                need(tally, ']');
            }
        } else
            take_value(tally, 1, 0);
    } while (!tally->is_broken && takes(tally, ','));
    need(tally, '}');
    if (is_feature)
        note_id(tally, &id, property);
    tally->features += is_feature;
    tally->geometries += is_feature && has_geometry;
    if (tally->at - tally->checked > CHECKED_AT_ONCE)
        check_text(tally);
}

static void tell(const struct tally *tally)
{
    put("{\"ok\":true,\"layer\":{\"features\":%lld,\"geometries\":%lld,\"has_z\":%s,\"columns\":{", (long long)tally->features,
        (long long)tally->geometries, tally->has_z ? "true" : "false");
    for (int number = 0; number < tally->count; number++) {
        const struct property *property = tally->properties + number;
        put(number ? ",\"" : "\"");
        put_bytes(property->name.start, property->name.size);
        put("\":{\"filled\":%lld}", (long long)property->filled);
    }
    put("}}");
}

void count_geojson(const char *file)
{
    struct tally *tally = calloc(1, sizeof *tally);
    if (!tally)
        _exit(1);
    tally->file = map_file(file);
    tally->at = tally->checked = tally->file.start;
    tally->end = tally->at + tally->file.size;
    while (!tally->is_broken && tally->at < tally->end) {
        take_feature(tally, 0);
        skip_space(tally);
    }
    if (tally->file.size)
        check_text(tally);
    add_ids(tally);
    if (!tally->file.size || tally->is_broken)
        put("{\"ok\":false");
    else
        tell(tally);
    unmap_file(&tally->file);
    free(tally);
}
