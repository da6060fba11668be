/*
 * Finds features that a transformation does not bring back to where they were, or takes farther than the Earth is long
 * around, or beyond where a projection is of use: their coordinates in the other system mean nothing, although PROJ computes
 * some without an error. Finds those that it tears, too: lines and areas across an edge of the other map, such as the date
 * line, that span all of it in the result; and those that lose parts at a pole. A lattice over the extent of a layer tells
 * whether any can stray or be torn; only then is every feature examined, as it is where the extent contains a pole.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "crs.h"
#include "straying.h"

enum { WEST, EAST, SOUTH, NORTH, EDGES, LATTICE = 17, HALVINGS = 60, POLES = 2 };
static const double DEGREES_A_METER = 1e-5, TURN = 360, POLE = 90, FARTHEST_METERS = 4.0e7;
/* The ends of a torn edge are farther apart than that; near a pole, those of others may be half a turn apart. */
static const double LEAP_DEGREES = 90, LEAP_METERS = 1.0e6, TORN_DEGREES = 270;
/* The greatest x of an origin: the number of a zone may precede its coordinates, as in 47,500,000. */
static const double ORIGIN_METERS = 5.0e7;

/* There and back: the transformations, and what is still the same place or still on the map, in units of each system. */
struct trip {
    handle there, back, transformer;
    int in_degrees, to_degrees, is_shortest, may_stray, may_tear;
    double same, farthest, leap;
    struct reach reach;
    handle poles[POLES];
};

struct place {
    double x, y;
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

static int arrives(const struct trip *trip, struct place from, struct place *to)
{
    double z = 0;
    int is_fine = 0;
    *to = from;
    return OCTTransformEx(trip->there, 1, &to->x, &to->y, &z, &is_fine) && is_fine;
}

/* How far apart two places are on the other map, from its one side to the other if they are there. */
static double leap(const struct trip *trip, struct place one, struct place other)
{
    return trip->to_degrees ? fabs(one.x - other.x) : hypot(one.x - other.x, one.y - other.y);
}

/* How far apart the ends of an edge are on the other map, if an edge of that lies between them however often the half of which
 * the ends are farther apart is halved again; 0 if none does. Only such an edge is still torn then. So is one that is the
 * shortest way, which none of the places halfway between the coordinates is on. */
static double tear(const struct trip *trip, struct place from, struct place to, struct place from_there, struct place to_there)
{
    struct place middle_there;
    double apart = leap(trip, from_there, to_there), left = apart, width = fabs(from.x - to.x);
    if (trip->is_shortest && width > TURN / 2 && width < TURN)
        return apart > trip->leap ? apart : 0;
    for (int halving = 0; left > trip->leap && halving < HALVINGS; halving++) {
        struct place middle = {from.x + (to.x - from.x) / 2, from.y + (to.y - from.y) / 2};
        if (!arrives(trip, middle, &middle_there))
            return 0;
        double first = leap(trip, from_there, middle_there), second = leap(trip, middle_there, to_there);
        left = fmax(first, second);
        if (first > second)
            to = middle, to_there = middle_there;
        else
            from = middle, from_there = middle_there;
    }
    return left > (trip->to_degrees ? TORN_DEGREES : trip->leap) ? apart : 0;
}

static struct place position(handle line, int number)
{
    return (struct place){OGR_G_GetX(line, number), OGR_G_GetY(line, number)};
}

/* The greatest distance on the other map between ends of a torn edge of a geometry. */
static double widest_tear(const struct trip *trip, handle geometry)
{
    int parts = OGR_G_GetGeometryCount(geometry), points = parts ? 0 : OGR_G_GetPointCount(geometry);
    double widest = 0;
    for (int part = 0; part < parts; part++)
        widest = fmax(widest, widest_tear(trip, OGR_G_GetGeometryRef(geometry, part)));
    struct place before = {0}, before_there = {0}, here, there;
    for (int point = 0, was_there = 0; points > 1 && point < points; point++) {
        here = position(geometry, point);
        int is_there = arrives(trip, here, &there);
        if (was_there && is_there)
            widest = fmax(widest, tear(trip, before, here, before_there, there));
        before = here, before_there = there, was_there = is_there;
    }
    return widest;
}

/* Whether an edge is that wide, and no parallel from one side of the map to the other, such as a pole. */
static int is_as_wide(handle geometry, double width)
{
    const double same = 1e-6;
    int parts = OGR_G_GetGeometryCount(geometry), points = parts ? 0 : OGR_G_GetPointCount(geometry), found = 0;
    for (int part = 0; part < parts && !found; part++)
        found = is_as_wide(OGR_G_GetGeometryRef(geometry, part), width);
    for (int point = 1; point < points && !found; point++) {
        double apart = fabs(OGR_G_GetX(geometry, point) - OGR_G_GetX(geometry, point - 1));
        found = apart >= width - same && apart < TURN - same;
    }
    return found;
}

/* A geometry as the converter makes it of another one, which it may cut at the date line; NULL if it cannot. */
static handle as_made(handle geometry, const struct trip *trip)
{
    return trip->transformer ? OGR_GeomTransformer_Transform(trip->transformer, geometry) : NULL;
}

/* The converter cuts no points, in GDAL 3.10, before it has seen other geometries of the layer. */
static void show(handle geometry, const struct trip *trip)
{
    handle made = as_made(geometry, trip);
    if (made)
        OGR_G_DestroyGeometry(made);
}

static int is_torn(const struct trip *trip, handle geometry)
{
    double width = widest_tear(trip, geometry);
    if (width == 0 || !trip->to_degrees)
        return width != 0;
    handle made = as_made(geometry, trip);
    int found = !made || is_as_wide(made, width);
    if (made)
        OGR_G_DestroyGeometry(made);
    return found;
}

/* What may happen on the way to places like those in a layer. On a map in degrees, the date line may also lie between the
 * outermost places of the lattice and the next ones, that is, beyond all of them. */
static void foresee(struct trip *trip, handle layer)
{
    struct place before[LATTICE] = {0}, here, there;
    double box[EDGES], farthest = 0, widest = 0;
    if (OGR_L_GetExtent(layer, box, 1) != 0)
        return;
    for (int column = 0; column < LATTICE; column++)
        for (int row = 0; row < LATTICE; row++) {
            here.x = box[WEST] + (box[EAST] - box[WEST]) * column / (LATTICE - 1);
            here.y = box[SOUTH] + (box[NORTH] - box[SOUTH]) * row / (LATTICE - 1);
            trip->may_stray |= strays_at(trip, here.x, here.y);
            if (!arrives(trip, here, &there)) {
                trip->may_tear = 1;
                continue;
            }
            farthest = fmax(farthest, fabs(there.x));
            widest = fmax(widest, column ? leap(trip, before[row], there) : 0);
            widest = fmax(widest, row ? leap(trip, before[row - 1], there) : 0);
            before[row] = there;
        }
    trip->may_tear |= widest > trip->leap || (trip->to_degrees && farthest + widest >= TURN / 2);
}

static int returns(const struct trip *trip, struct place *place)
{
    double z = 0;
    int is_fine = 0;
    return OCTTransformEx(trip->back, 1, &place->x, &place->y, &z, &is_fine) && is_fine;
}

/* The poles that are one place of the map of a layer, within its extent: there the converter cuts, and loses what it cuts
 * with. */
static void find_poles(struct trip *trip, handle layer)
{
    double box[EDGES];
    if (trip->in_degrees || !trip->to_degrees || OGR_L_GetExtent(layer, box, 1) != 0)
        return;
    for (int number = 0; number < POLES; number++) {
        struct place one = {0, number ? POLE : -POLE}, other = {TURN / 4, one.y};
        if (!returns(trip, &one) || !returns(trip, &other) || !(hypot(one.x - other.x, one.y - other.y) <= trip->same))
            continue;
        if (one.x < box[WEST] - trip->same || one.x > box[EAST] + trip->same || one.y < box[SOUTH] - trip->same ||
            one.y > box[NORTH] + trip->same)
            continue;
        trip->poles[number] = OGR_G_CreateGeometry(POINT);
        OGR_G_SetPoint_2D(trip->poles[number], 0, one.x, one.y);
    }
}

/* Whether a geometry reaches a place; most do not even with their extents. */
static int reaches(const struct trip *trip, handle geometry, handle place)
{
    double box[EDGES], x = OGR_G_GetX(place, 0), y = OGR_G_GetY(place, 0), same = trip->same;
    OGR_G_GetEnvelope(geometry, box);
    int is_near = x >= box[WEST] - same && x <= box[EAST] + same && y >= box[SOUTH] - same && y <= box[NORTH] + same;
    return is_near && OGR_G_Distance(geometry, place) <= same;
}

/* How many points a geometry of points has that are not empty; 0 of others. */
static int64_t count_points(handle geometry)
{
    int64_t found = 0;
    int parts = OGR_G_GetGeometryCount(geometry);
    if (OGR_G_GetDimension(geometry) != 0)
        return 0;
    for (int part = 0; part < parts; part++)
        found += count_points(OGR_G_GetGeometryRef(geometry, part));
    return parts ? found : !OGR_G_IsEmpty(geometry);
}

/* Whether a geometry that reaches a pole does not reach it as the converter makes it, or has fewer points or shorter lines. */
static int loses(const struct trip *trip, handle geometry)
{
    double box[EDGES] = {0};
    for (int number = 0; number < POLES; number++) {
        if (!trip->poles[number] || !reaches(trip, geometry, trip->poles[number]))
            continue;
        handle made = as_made(geometry, trip);
        if (!made)
            return 1;
        OGR_G_GetEnvelope(made, box);
        double latitude = number ? box[NORTH] : -box[SOUTH], length = OGR_G_Length(geometry);
        /* An empty point still has the latitude of the one that was cut, also among others. */
        int is_lost = OGR_G_IsEmpty(made) || count_points(made) < count_points(geometry) ||
                      !(latitude >= POLE - trip->same * DEGREES_A_METER) || OGR_G_Transform(made, trip->back) != 0 ||
                      OGR_G_Length(made) < length - trip->same;
        OGR_G_DestroyGeometry(made);
        if (is_lost)
            return 1;
    }
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

struct found {
    int64_t count, first;
};

static void find(struct found *found, int64_t number)
{
    found->first = found->count++ ? found->first : number;
}

static void count(const struct trip *trip, handle layer, struct found *stray, struct found *torn, struct found *lost)
{
    handle feature;
    int64_t number = 0;
    int has_pole = trip->poles[0] || trip->poles[1], is_shown = !has_pole;
    OGR_L_ResetReading(layer);
    while ((feature = OGR_L_GetNextFeature(layer))) {
        handle geometry = OGR_F_GetGeometryRef(feature);
        number++;
        if (geometry && !OGR_G_IsEmpty(geometry)) {
            if (!is_shown && OGR_G_GetDimension(geometry) > 0) {
                show(geometry, trip);
                is_shown = 1;
            }
            if (trip->may_stray && strays(trip, geometry))
                find(stray, number);
            if (trip->may_tear && is_torn(trip, geometry))
                find(torn, number);
            if (has_pole && loses(trip, geometry))
                find(lost, number);
        }
        OGR_F_Destroy(feature);
    }
    OGR_L_ResetReading(layer);
}

/* Set what one of two units, or both, determine of a trip. */
static void measure(struct trip *trip, handle from, handle to, double meters)
{
    trip->in_degrees = OSRIsGeographic(from);
    trip->same = trip->in_degrees ? meters * DEGREES_A_METER : meters / OSRGetLinearUnits(from, NULL);
    /* In degrees, both limits are infinite: no place is too far. */
    double unit = OSRIsGeographic(to) ? 0 : OSRGetLinearUnits(to, NULL);
    double most = (FARTHEST_METERS + ORIGIN_METERS) / unit;
    trip->farthest = FARTHEST_METERS / unit;
    trip->to_degrees = OSRIsGeographic(to);
    trip->leap = trip->to_degrees ? LEAP_DEGREES : LEAP_METERS / unit;
    if (isinf(trip->reach.most))
        trip->reach = (struct reach){-most, most};
}

static void end_trip(const struct trip *trip)
{
    for (int number = 0; number < POLES; number++)
        if (trip->poles[number])
            OGR_G_DestroyGeometry(trip->poles[number]);
    if (trip->transformer)
        OGR_GeomTransformer_Destroy(trip->transformer);
    if (trip->there)
        OCTDestroyCoordinateTransformation(trip->there);
    if (trip->back)
        OCTDestroyCoordinateTransformation(trip->back);
}

void tell_strays(handle layer, int source, int target, double meters, struct reach reach, int wraps, int is_shortest)
{
    handle given = source ? system_of_code(source) : NULL, from = source ? given : OGR_L_GetSpatialRef(layer), to = system_of_code(target);
    struct found stray = {0}, torn = {0}, lost = {0};
    struct trip trip = {.reach = reach, .is_shortest = is_shortest, .may_tear = is_shortest};
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (from && to) {
        prepare(&trip, from, to);
        measure(&trip, from, to, meters);
    }
    if (trip.there && trip.back) {
        foresee(&trip, layer);
        find_poles(&trip, layer);
    }
    if (trip.there && (trip.may_tear || trip.poles[0] || trip.poles[1])) {
        const char *const wrap[] = {"WRAPDATELINE=YES", is_shortest ? "DATELINEOFFSET=180" : NULL, NULL};
        trip.transformer = OGR_GeomTransformer_Create(trip.there, wraps ? wrap : NULL);
    }
    if (trip.may_stray || trip.may_tear || trip.poles[0] || trip.poles[1])
        count(&trip, layer, &stray, &torn, &lost);
    CPLPopErrorHandler();
    put("{\"count\":%lld,\"first\":%lld,\"torn\":%lld,\"first_torn\":%lld,\"lost\":%lld,\"first_lost\":%lld}",
        (long long)stray.count, (long long)stray.first, (long long)torn.count, (long long)torn.first, (long long)lost.count,
        (long long)lost.first);
    end_trip(&trip);
    if (given)
        OSRDestroySpatialReference(given);
    if (to)
        OSRDestroySpatialReference(to);
}
