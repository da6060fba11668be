/* Features that wait for their table; see waiting.h. */
#include <stdlib.h>
#include <unistd.h>

#include "answer.h"
#include "columns.h"
#include "waiting.h"

enum { LEAST_ROOM = 64 };

static struct {
    handle layer, *features;
    size_t count, taken, room;
} waiting;

void wait_with(handle feature, const struct column *columns, int count)
{
    handle geometry = OGR_F_GetGeometryRef(feature);
    if (geometry && OGR_G_IsEmpty(geometry))
        OGR_G_DestroyGeometry(OGR_F_StealGeometry(feature));
    for (int field = 0; field < count; field++)
        if (!value_of(feature, field, columns[field].type))
            OGR_F_SetFieldNull(feature, field);
    if (waiting.count == waiting.room) {
        waiting.room = waiting.room ? 2 * waiting.room : LEAST_ROOM;
        waiting.features = realloc(waiting.features, waiting.room * sizeof *waiting.features);
        if (!waiting.features)
            _exit(1);
    }
    waiting.features[waiting.count++] = feature;
}

handle next_held(handle layer)
{
    if (layer != waiting.layer)
        return OGR_L_GetNextFeature(layer);
    if (waiting.taken < waiting.count)
        return waiting.features[waiting.taken++];
    waiting.layer = NULL;
    return NULL;
}

int move_feature(handle feature, const int *map, int count, handle carrier, handle layer)
{
    for (int field = 0; field < count; field++) {
        if (map[field] < 0)
            continue;
        if (OGR_F_IsFieldSetAndNotNull(feature, field)) {
            union value *value = OGR_F_GetRawFieldRef(feature, field), *place = OGR_F_GetRawFieldRef(carrier, map[field]), old = *place;
            *place = *value;
            *value = old;
        } else
            OGR_F_SetFieldNull(carrier, map[field]);
    }
    OGR_F_SetGeometryDirectly(carrier, OGR_F_StealGeometry(feature));
    OGR_F_SetFID(carrier, NO_FID);
    OGR_F_Destroy(feature);
    return OGR_L_CreateFeature(layer, carrier) == 0;
}

int store_waiting(void)
{
    handle layer = waiting.layer, feature;
    int map[MOST_COLUMNS], ok = 1;
    if (!layer)
        return 1;
    handle carrier = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    for (int field = 0; field < MOST_COLUMNS; field++)
        map[field] = field;
    while ((feature = next_held(layer)))
        ok &= move_feature(feature, map, OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(layer)), carrier, layer);
    OGR_F_Destroy(carrier);
    return ok;
}

void begin_waiting(handle layer)
{
    if (!store_waiting())
        refused = "memory";
    waiting.layer = layer;
    waiting.count = waiting.taken = 0;
}

handle waiting_feature(size_t back)
{
    return waiting.features[waiting.count - back];
}

void drop_waiting(size_t features)
{
    while (features--)
        OGR_F_Destroy(waiting.features[--waiting.count]);
}
