/*
 * Compares the coordinate system that a result records with the one that it is in, for formats that cannot record all. The
 * rule is that of service/engine/recorded_system.py: they are the same if a transformation from one to the other moves nothing.
 */
#include <math.h>

#include "answer.h"
#include "crs.h"

enum { MOST_COMPARED = 1000 };

handle system_of_code(int code)
{
    handle made = OSRNewSpatialReference(NULL);
    if (OSRImportFromEPSG(made, code) == 0) {
        OSRSetAxisMappingStrategy(made, TRADITIONAL_ORDER);
        return made;
    }
    OSRDestroySpatialReference(made);
    return NULL;
}

struct extent {
    double west, east, south, north;
};

static void extend(struct extent *extent, handle geometry)
{
    double box[4];
    OGR_G_GetEnvelope(geometry, box);
    extent->west = fmin(extent->west, box[0]);
    extent->east = fmax(extent->east, box[1]);
    extent->south = fmin(extent->south, box[2]);
    extent->north = fmax(extent->north, box[3]);
}

/* How far two extents are apart; not a number if there is nothing in one of them. */
static double distance(const struct extent *one, const struct extent *other)
{
    double x = fmax(fabs(one->west - other->west), fabs(one->east - other->east));
    double y = fmax(fabs(one->south - other->south), fabs(one->north - other->north));
    return isfinite(x + y) ? fmax(x, y) : NAN;
}

/* How far the recorded system of a layer moves its first features; not a number if nothing leads to the other system. */
static double distance_to(handle layer, handle planned)
{
    struct extent before = {INFINITY, -INFINITY, INFINITY, -INFINITY}, after = before;
    handle recorded = OGR_L_GetSpatialRef(layer), feature;
    handle to_planned = recorded ? OCTNewCoordinateTransformation(recorded, planned) : NULL;
    int compared = 0, is_moved = 1;
    OGR_L_ResetReading(layer);
    while (is_moved && compared < MOST_COMPARED && (feature = OGR_L_GetNextFeature(layer))) {
        handle geometry = OGR_F_GetGeometryRef(feature);
        if (geometry && !OGR_G_IsEmpty(geometry)) {
            compared++;
            extend(&before, geometry);
            is_moved = to_planned && OGR_G_Transform(geometry, to_planned) == 0;
            extend(&after, geometry);
        }
        OGR_F_Destroy(feature);
    }
    if (to_planned)
        OCTDestroyCoordinateTransformation(to_planned);
    return !compared ? 0 : is_moved ? distance(&before, &after) : NAN;
}

/* The datum of a system, its ellipsoid and its prime meridian, unless it says how the datum is transformed. */
static void tell_datum(handle system)
{
    enum { PARAMETERS = 7 };
    double shift[PARAMETERS];
    int is_described = system && OSRGetTOWGS84(system, shift, PARAMETERS) != 0;
    const char *name = is_described ? OSRGetAttrValue(system, "DATUM", 0) : NULL;
    if (!name)
        return;
    put(",\"datum\":{\"name\":");
    put_text(name);
    put(",\"axis\":");
    put_number(OSRGetSemiMajor(system, NULL));
    put(",\"flattening\":");
    put_number(OSRGetInvFlattening(system, NULL));
    put(",\"meridian\":");
    put_number(OSRGetPrimeMeridian(system, NULL));
    put("}");
}

int compare_system(const char *name, int code, options drivers, options open_options)
{
    handle result = GDALOpenEx(name, OF_VECTOR | OF_VERBOSE, drivers, open_options, NULL);
    handle planned = system_of_code(code);
    double farthest = planned ? 0 : NAN;
    for (int number = 0, count = result && planned ? GDALDatasetGetLayerCount(result) : 0; number < count; number++) {
        double moved = distance_to(GDALDatasetGetLayer(result, number), planned);
        farthest = isnan(moved) || isnan(farthest) ? NAN : fmax(farthest, moved);
    }
    if (planned)
        OSRDestroySpatialReference(planned);
    put("{\"moved\":");
    put_number(farthest);
    tell_datum(result && GDALDatasetGetLayerCount(result) ? OGR_L_GetSpatialRef(GDALDatasetGetLayer(result, 0)) : NULL);
    if (result)
        GDALClose(result);
    return result != NULL;
}
