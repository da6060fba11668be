/* The record of what a layer holds, however it is counted, and how it is told. */
#include <math.h>
#include <string.h>

#include "answer.h"
#include "layer_counts.h"

enum { LONGEST_NUMBER = 63 };

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
