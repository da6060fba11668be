/*
 * Finds features that a transformation does not bring back to where they were, or takes farther than the Earth is long
 * around, or beyond where a projection is of use: their coordinates in the other system mean nothing, although PROJ computes
 * some without an error. A lattice over the extent of a layer tells whether that can be; only then is every feature examined.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "crs.h"
#include "straying.h"

enum { WEST, EAST, SOUTH, NORTH, EDGES, LATTICE = 17 };
static const double DEGREES_A_METER = 1e-5, TURN = 360, POLE = 90, FARTHEST_METERS = 4.0e7;
/* The greatest x of an origin: the number of a zone may precede its coordinates, as in 47,500,000. */
static const double ORIGIN_METERS = 5.0e7;

/* There and back: the transformations, and what is still the same place or still on the map, in units of each system. */
struct trip {
    handle there, back;
    int in_degrees;
    double same, farthest;
    struct reach reach;
};

/* Making a transformation takes most of the time. GDAL keeps a destroyed one for the next that needs the same, which is
 * the conversion; it gets one that has not counted any errors. */
static void prepare(struct trip *trip, handle from, handle to)
{
    handle made = OCTNewCoordinateTransformation(from, to);
    if (!made)
        return;
    trip->there = OCTClone(made);
    trip->back = OCTGetInverse(made);
    OCTDestroyCoordinateTransformation(made);
}

/* How far apart two values of an axis are; at `latitude` if it is a longitude. */
static double apart(const struct trip *trip, double one, double other, int is_x, double latitude)
{
    double far = fabs(one - other), shrunk = latitude / POLE;
    if (!trip->in_degrees || !is_x)
        return far;
    return fmin(far, fabs(far - TURN)) * fmax(0, 1 - shrunk * shrunk);
}

static int strays_at(const struct trip *trip, double x, double y)
{
    double to_x = x, to_y = y, z = 0;
    int is_fine = 0;
    if (!OCTTransformEx(trip->there, 1, &to_x, &to_y, &z, &is_fine) || !is_fine)
        return 1;
    if (to_x < trip->reach.least || to_x > trip->reach.most || fabs(to_y) > trip->farthest)
        return 1;
    if (!OCTTransformEx(trip->back, 1, &to_x, &to_y, &z, &is_fine) || !is_fine)
        return 1;
    return !(apart(trip, x, to_x, 1, y) <= trip->same && apart(trip, y, to_y, 0, y) <= trip->same);
}

static int may_stray(const struct trip *trip, handle layer)
{
    double box[EDGES];
    if (OGR_L_GetExtent(layer, box, 1) != 0)
        return 0;
    for (int column = 0; column < LATTICE; column++)
        for (int row = 0; row < LATTICE; row++)
            if (strays_at(trip, box[WEST] + (box[EAST] - box[WEST]) * column / (LATTICE - 1),
                          box[SOUTH] + (box[NORTH] - box[SOUTH]) * row / (LATTICE - 1)))
                return 1;
    return 0;
}

static int strays(const struct trip *trip, handle geometry)
{
    int parts = OGR_G_GetGeometryCount(geometry), points = parts ? 0 : OGR_G_GetPointCount(geometry);
    for (int part = 0; part < parts; part++)
        if (strays(trip, OGR_G_GetGeometryRef(geometry, part)))
            return 1;
    for (int point = 0; point < points; point++)
        if (strays_at(trip, OGR_G_GetX(geometry, point), OGR_G_GetY(geometry, point)))
            return 1;
    return 0;
}

static void count(const struct trip *trip, handle layer, int64_t *found, int64_t *first)
{
    handle feature;
    int64_t number = 0;
    OGR_L_ResetReading(layer);
    while ((feature = OGR_L_GetNextFeature(layer))) {
        handle geometry = OGR_F_GetGeometryRef(feature);
        number++;
        if (geometry && !OGR_G_IsEmpty(geometry) && strays(trip, geometry)) {
            *found += 1;
            *first = *first ? *first : number;
        }
        OGR_F_Destroy(feature);
    }
    OGR_L_ResetReading(layer);
}

void tell_strays(handle layer, int source, int target, double meters, struct reach reach)
{
    handle given = source ? system_of_code(source) : NULL, from = source ? given : OGR_L_GetSpatialRef(layer), to = system_of_code(target);
    int64_t found = 0, first = 0;
    struct trip trip = {.reach = reach};
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (from && to) {
        prepare(&trip, from, to);
        trip.in_degrees = OSRIsGeographic(from);
        trip.same = trip.in_degrees ? meters * DEGREES_A_METER : meters / OSRGetLinearUnits(from, NULL);
        /* In degrees, both limits are infinite: no place is too far. */
        double unit = OSRIsGeographic(to) ? 0 : OSRGetLinearUnits(to, NULL);
        double most = (FARTHEST_METERS + ORIGIN_METERS) / unit;
        trip.farthest = FARTHEST_METERS / unit;
        if (isinf(reach.most))
            trip.reach = (struct reach){-most, most};
    }
    if (trip.there && trip.back && may_stray(&trip, layer))
        count(&trip, layer, &found, &first);
    CPLPopErrorHandler();
    put("{\"count\":%lld,\"first\":%lld}", (long long)found, (long long)first);
    if (trip.there)
        OCTDestroyCoordinateTransformation(trip.there);
    if (trip.back)
        OCTDestroyCoordinateTransformation(trip.back);
    if (given)
        OSRDestroySpatialReference(given);
    if (to)
        OSRDestroySpatialReference(to);
}
