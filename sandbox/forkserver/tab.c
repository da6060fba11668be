/*
 * Counts what a result in MapInfo TAB holds from its bytes, with none of the code that wrote it: its driver converts each text,
 * and takes as long to read a table as to write it. The .tab names the columns, the .dat has the records, and for each of them the
 * .id says where the .map has its object, which bears its number. Anything unexpected is left to the driver.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "layer_counts.h"
#include "mapped_file.h"
#include "tab.h"
#include "xml_tags.h"

enum { ROWS_AT = 4, SIZES_AT = 8, TABLE_HEADER = 32, TABLE_FIELD = 32, PLACE_BYTES = 4, OBJECT_HEAD = 5, MOST_OBJECT_TYPES = 63 };

/* Take the columns from the lines of the .tab that define them. Returns 0 if it is not to be read here. */
static int take_columns(const struct mapped *definition, struct found_layer *layer)
{
    static const char HEAD[] = "\n  Fields ";
    const char *end = definition->start + definition->size, *at = find(definition->start, end, HEAD);
    const char *line = at ? memchr(at + 1, '\n', (size_t)(end - at - 1)) : NULL;
    int count = line ? atoi(at + sizeof HEAD - 1) : 0;
    while (line && layer->counted.count < count) {
        const char *name = past_blanks(line, end), *past = name;
        while (past < end && (isalnum((unsigned char)*past) || *past == '_'))
            past++;
        if (past == name || past == end || *past != ' ')
            return 0;
        char *copy = strndup(name, (size_t)(past - name));
        if (!copy)
            return 0;
        column_named(layer, copy);
        free(copy);
        line = memchr(past, '\n', (size_t)(end - past));
    }
    return count > 0 && layer->counted.count == count;
}

/* Count the records of the table, none of which is deleted. Returns 0 if there are others. */
static int count_rows(struct mapped *table, struct counted_layer *counted)
{
    if (table->size < TABLE_HEADER)
        return 0;
    size_t head = little(table->start + SIZES_AT) & 0xffff, width = little(table->start + SIZES_AT) >> 16;
    counted->features = little(table->start + ROWS_AT);
    if (head != TABLE_HEADER + (size_t)counted->count * TABLE_FIELD + 1 || !width || table->size < head + (size_t)counted->features * width)
        return 0;
    const char *record = table->start + head;
    for (int64_t row = 0; row < counted->features; row++, record += width) {
        if (*record != ' ')
            return 0;
        pass(table, record);
    }
    return 1;
}

/* Count the objects. Returns 0 if a record has none where it should be. */
static int count_objects(struct mapped *places, struct mapped *objects, struct counted_layer *counted)
{
    if (places->size != (size_t)counted->features * PLACE_BYTES)
        return 0;
    for (int64_t row = 0; row < counted->features; row++) {
        size_t place = little(places->start + row * PLACE_BYTES);
        if (!place)
            continue;
        if (place + OBJECT_HEAD > objects->size || !objects->start[place] || (unsigned char)objects->start[place] > MOST_OBJECT_TYPES ||
            little(objects->start + place + 1) != row + 1)
            return 0;
        counted->geometries++;
        pass(objects, objects->start + place);
    }
    return 1;
}

int count_tab(const char *name)
{
    struct mapped definition = map_file(name), table = map_beside(name, ".dat"), places = map_beside(name, ".id"),
                  objects = map_beside(name, ".map");
    struct found_layers found = {0};
    struct found_layer *layer = layer_named(&found, name);
    int is_counted = take_columns(&definition, layer) && count_rows(&table, &layer->counted) &&
                     count_objects(&places, &objects, &layer->counted);
    if (is_counted)
        tell_named_as(name, &layer->counted);
    forget_found(&found);
    unmap_file(&definition);
    unmap_file(&table);
    unmap_file(&places);
    unmap_file(&objects);
    return is_counted;
}
