/* The record of what a layer holds, however it is counted, and how it is told. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "layer_counts.h"

enum { LONGEST_NUMBER = 63, MORE = 64 };

void count_geometry(struct counted_layer *layer, int type)
{
    layer->geometries++;
    layer->has_z |= OGR_GT_HasZ(type);
    layer->has_m |= OGR_GT_HasM(type);
}

void count_text(struct counted_column *column, const char *text, size_t size)
{
    char copy[LONGEST_NUMBER + 1], *end = copy;
    column->filled++;
    column->empty += size == 0;
    if (size == 0 || isnan(column->total))
        return;
    double value = NAN;
    if (size <= LONGEST_NUMBER && strchr("+-.0123456789 ", *text)) {
        memcpy(copy, text, size);
        copy[size] = 0;
        value = CPLStrtod(copy, &end);
    }
    column->total += end == copy + size ? fabs(value) : NAN;
}

void tell_counted(const char *name, const struct counted_layer *layer)
{
    put("{\"name\":");
    put_text(name);
    put(",\"features\":%lld,\"geometries\":%lld,\"has_z\":%s,\"has_m\":%s,\"columns\":", (long long)layer->features,
        (long long)layer->geometries, layer->has_z ? "true" : "false", layer->has_m ? "true" : "false");
    put(layer->counts_values ? "{" : "null");
    for (int number = 0; layer->counts_values && number < layer->count; number++) {
        const struct counted_column *column = layer->columns + number;
        put(number ? "," : "");
        put_text(column->name);
        put(":{\"filled\":%lld,\"empty\":%lld,\"total\":", (long long)column->filled, (long long)column->empty);
        put_number(column->total);
        put("}");
    }
    put(layer->counts_values ? "}}" : "}");
}

void tell_named_as(const char *file, const struct counted_layer *layer)
{
    const char *slash = strrchr(file, '/'), *start = slash ? slash + 1 : file, *point = strrchr(start, '.');
    char *name = point ? strndup(start, (size_t)(point - start)) : NULL;
    if (!name)
        _exit(1);
    tell_counted(name, layer);
    free(name);
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

/* Layers are searched from the one that was found last on, and columns from behind it: they follow each other alike. */
struct found_layer *layer_named(struct found_layers *found, const char *name)
{
    for (int tried = 0; tried < found->count; tried++) {
        int number = (found->latest + tried) % found->count;
        if (strcmp(found->all[number].name, name) == 0)
            return found->all + (found->latest = number);
    }
    found->all = grown(found->all, found->count, sizeof *found->all);
    found->latest = found->count++;
    found->all[found->latest] = (struct found_layer){.name = copy_of(name), .counted = {.counts_values = 1}};
    return found->all + found->latest;
}

struct counted_column *column_named(struct found_layer *layer, const char *name)
{
    struct counted_layer *counted = &layer->counted;
    for (int tried = 1; tried <= counted->count; tried++) {
        int number = (layer->latest + tried) % counted->count;
        if (strcmp(counted->columns[number].name, name) == 0)
            return counted->columns + (layer->latest = number);
    }
    counted->columns = grown(counted->columns, counted->count, sizeof *counted->columns);
    layer->latest = counted->count++;
    counted->columns[layer->latest] = (struct counted_column){.name = copy_of(name)};
    return counted->columns + layer->latest;
}

void tell_found(const struct found_layers *found)
{
    for (int number = 0; number < found->count; number++) {
        put(number ? "," : "");
        tell_counted(found->all[number].name, &found->all[number].counted);
    }
}

void forget_found(struct found_layers *found)
{
    for (int number = 0; number < found->count; number++) {
        struct found_layer *layer = found->all + number;
        for (int column = 0; column < layer->counted.count; column++)
            free((char *)layer->counted.columns[column].name);
        free(layer->counted.columns);
        free(layer->name);
    }
    free(found->all);
}

void add_text(struct text_read *text, const char *piece, size_t size)
{
    size_t room = text->size < LONGEST_TEXT ? LONGEST_TEXT - text->size : 0;
    memcpy(text->start + LONGEST_TEXT - room, piece, size < room ? size : room);
    text->size += size;
}

int is_kept(struct text_read *text)
{
    if (text->size > LONGEST_TEXT)
        return 0;
    text->start[text->size] = 0;
    return 1;
}
