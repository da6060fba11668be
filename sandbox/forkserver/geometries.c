/* Looks at the geometries of a layer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "geometries.h"
#include "rings.h"

enum { BLOB_HEAD = 8, ENVELOPE = 32 };

/* How many rings, or areas, of a geometry are compared with each other. */
enum { MOST_COMPARED = 200 };

/* Surfaces, which become areas. */
enum { SURFACE = 15, TRIANGLES = 16 };

/* Longitudes may exceed 180 by another turn, so that a geometry can cross the date line in one piece. */
static const double FARTHEST = 540.0, POLE = 90.001;

/* Smaller measures stand for none in a shapefile. */
static const double ABSENT = -1e38;

/* How many areas of a geometry have points with different elevations. */
static int count_sloping(handle geometry, int flat)
{
    double box[6];
    int found = 0;
    if (flat == MULTI_AREA)
        for (int number = 0, count = OGR_G_GetGeometryCount(geometry); number < count; number++)
            found += count_sloping(OGR_G_GetGeometryRef(geometry, number), AREA);
    if (flat != AREA)
        return found;
    OGR_G_GetEnvelope3D(geometry, box);
    return box[4] != box[5];
}

/* Whether a position of a geometry has a measure. */
static int is_measured(handle geometry)
{
    int found = 0, parts = OGR_G_GetGeometryCount(geometry);
    for (int number = 0; number < parts && !found; number++)
        found = is_measured(OGR_G_GetGeometryRef(geometry, number));
    for (int at = 0, count = parts ? 0 : OGR_G_GetPointCount(geometry); at < count && !found; at++)
        found = OGR_G_GetM(geometry, at) >= ABSENT;
    return found;
}

static void replace_absent(handle geometry, double measure)
{
    int is_high = OGR_GT_HasZ(OGR_G_GetGeometryType(geometry)), parts = OGR_G_GetGeometryCount(geometry);
    for (int number = 0; number < parts; number++)
        replace_absent(OGR_G_GetGeometryRef(geometry, number), measure);
    for (int at = 0, count = parts ? 0 : OGR_G_GetPointCount(geometry); at < count; at++)
        if (OGR_G_GetM(geometry, at) >= ABSENT)
            continue;
        else if (is_high)
            OGR_G_SetPointZM(geometry, at, OGR_G_GetX(geometry, at), OGR_G_GetY(geometry, at), OGR_G_GetZ(geometry, at), measure);
        else
            OGR_G_SetPointM(geometry, at, OGR_G_GetX(geometry, at), OGR_G_GetY(geometry, at), measure);
}

void leave_out_absent(handle geometry)
{
    if (!OGR_GT_HasM(OGR_G_GetGeometryType(geometry)))
        return;
    int keeps = is_measured(geometry);
    replace_absent(geometry, keeps ? NAN : 0); /* what is left out here would appear again in a layer of measured geometries */
    if (!keeps)
        OGR_G_SetMeasured(geometry, 0);
}

static int leave_out_empty_parts(handle geometry)
{
    int found = 0, gathers = OGR_GT_IsSubClassOf(OGR_G_GetGeometryType(geometry), COLLECTION);
    for (int number = gathers ? OGR_G_GetGeometryCount(geometry) : 0; number-- > 0;) {
        handle part = OGR_G_GetGeometryRef(geometry, number);
        found |= OGR_G_IsEmpty(part) ? OGR_G_RemoveGeometry(geometry, number, 1) == 0 : leave_out_empty_parts(part);
    }
    return found;
}

/* The positions of a line or point; each is three numbers. */
static double *positions_of(handle geometry, int count)
{
    static double *positions;
    static int room;
    enum { STEP = 3 * sizeof *positions };
    if (count > room) {
        free(positions);
        positions = malloc((size_t)(room = count) * STEP);
        if (!positions)
            _exit(1);
    }
    OGR_G_GetPoints(geometry, positions, STEP, positions + 1, STEP, positions + 2, STEP);
    return positions;
}

/* Whether a hole of an area begins outside of the box around its outer ring. */
static int has_outlying_hole(handle area, int rings)
{
    double box[4];
    int found = 0;
    OGR_G_GetEnvelope(OGR_G_GetGeometryRef(area, 0), box);
    for (int number = 1; number < rings && !found; number++) {
        handle ring = OGR_G_GetGeometryRef(area, number);
        double x = OGR_G_GetX(ring, 0), y = OGR_G_GetY(ring, 0);
        found = OGR_G_GetPointCount(ring) && (x < box[0] || x > box[1] || y < box[2] || y > box[3]);
    }
    return found;
}

/* Whether a ring goes around counterclockwise. */
static int is_reversed(handle ring)
{
    int count = OGR_G_GetPointCount(ring);
    double *at = count ? positions_of(ring, count) : NULL, twice = 0;
    for (int number = 1; number + 1 < count; number++)
        twice += (at[3 * number] - at[0]) * (at[3 * number + 4] - at[1]) - (at[3 * number + 3] - at[0]) * (at[3 * number + 1] - at[1]);
    return twice > 0;
}

/* Whether the outer ring of the first of some areas is counterclockwise, and the box around one of them contains another. Of many
 * areas, only the first are compared with each other, as in service/engine/jailed/flaws.py. */
static int has_nested_area(handle areas, int count)
{
    static double boxes[MOST_COMPARED][4];
    int found = 0;
    if (!is_reversed(OGR_G_GetGeometryRef(OGR_G_GetGeometryRef(areas, 0), 0)))
        return 0;
    count = count < MOST_COMPARED ? count : MOST_COMPARED;
    for (int number = 0; number < count; number++)
        OGR_G_GetEnvelope(OGR_G_GetGeometryRef(areas, number), boxes[number]);
    for (int number = 0; number < count * count && !found; number++)
        found = memcmp(boxes[number % count], boxes[number / count], sizeof boxes[0]) && is_within(boxes[number % count], boxes[number / count]);
    return found;
}

/* The rings of an area, or of several, of which the first are compared with each other: a point in each, and in how many others it is. */
static struct ring {
    handle ring;
    double box[4], x, y;
    int size, is_hole, depth;
} rings[MOST_COMPARED];

/* Add the rings of a geometry to those that are compared, and tell how many these are. */
static int gather_rings(handle geometry, int found)
{
    int flat = OGR_GT_Flatten(OGR_G_GetGeometryType(geometry));
    int is_area = flat == AREA || flat == TRIANGLE, gathers = flat == MULTI_AREA || flat == COLLECTION || flat == SURFACE || flat == TRIANGLES;
    int parts = is_area || gathers ? OGR_G_GetGeometryCount(geometry) : 0;
    for (int number = 0; number < parts && found < MOST_COMPARED; number++) {
        handle part = OGR_G_GetGeometryRef(geometry, number);
        if (is_area) {
            rings[found].ring = part;
            rings[found++].is_hole = number > 0;
        } else
            found = gather_rings(part, found);
    }
    return found;
}

/* Whether a hole is in no area, or an area is in another that has no hole there: where nothing but rings is stored, they become areas,
 * or holes. The same as in service/engine/jailed/flaws.py. */
static int has_ambiguous_rings(handle geometry)
{
    int gathered = gather_rings(geometry, 0), count = 0, found = 0;
    for (int number = 0; gathered > 1 && number < gathered; number++) {
        struct ring ring = rings[number];
        OGR_G_GetEnvelope(ring.ring, ring.box);
        int positions = OGR_G_GetPointCount(ring.ring);
        ring.size = positions && find_inside(positions_of(ring.ring, positions), positions, &ring.x, &ring.y) ? positions : 0;
        ring.depth = 0;
        rings[count] = ring;
        count += ring.size > 0;
    }
    for (int outer = 0; outer < count; outer++) {
        const double *at = NULL;
        for (int inner = 0; inner < count; inner++)
            if (inner != outer && is_within(rings[inner].box, rings[outer].box)) {
                at = at ? at : positions_of(rings[outer].ring, rings[outer].size);
                rings[inner].depth += is_in_ring(at, rings[outer].size, rings[inner].x, rings[inner].y);
            }
    }
    for (int number = 0; number < count; number++)
        found |= rings[number].depth % 2 != rings[number].is_hole;
    return found;
}

static int mend_positions(handle geometry, int is_ring)
{
    int found = 0, parts = OGR_G_GetGeometryCount(geometry), count = parts ? 0 : OGR_G_GetPointCount(geometry);
    int flat = parts ? OGR_GT_Flatten(OGR_G_GetGeometryType(geometry)) : 0;
    for (int number = 0; number < parts; number++)
        found |= mend_positions(OGR_G_GetGeometryRef(geometry, number), flat == AREA || flat == TRIANGLE);
    found |= flat == AREA && parts > 1 && has_outlying_hole(geometry, parts) ? OUTLYING : 0;
    found |= flat == MULTI_AREA && parts > 1 && has_nested_area(geometry, parts) ? NESTED : 0;
    double *at = count ? positions_of(geometry, count) : NULL, place = 0, height = 0;
    for (int number = 0; number < count; number++) { /* what is not finite times 0 is no number, and so is its sum */
        place += at[3 * number] * 0 + at[3 * number + 1] * 0;
        height += at[3 * number + 2] * 0;
    }
    double *last = is_ring && count ? at + 3 * (count - 1) : at;
    found |= last != at && (*last != *at || last[1] != at[1]) ? UNCLOSED : 0;
    found |= count == 1 && OGR_GT_Flatten(OGR_G_GetGeometryType(geometry)) != POINT ? SINGLE : 0;
    found |= isnan(place) ? NOWHERE : 0;
    found |= isnan(height) ? HEIGHTLESS : 0;
    for (int number = 0; isnan(height) && number < count; number++)
        if (!isfinite(at[3 * number + 2]))
            OGR_G_SetPoint(geometry, number, at[3 * number], at[3 * number + 1], 0);
    return found;
}

/* The same of a point, which has no parts; most geometries are points. */
static int mend_point(handle point)
{
    double x = OGR_G_GetX(point, 0), y = OGR_G_GetY(point, 0);
    int is_placed = isfinite(x) && isfinite(y), is_high = isfinite(OGR_G_GetZ(point, 0));
    if (!is_high)
        OGR_G_SetPoint(point, 0, x, y, 0);
    return (is_placed ? 0 : NOWHERE) | (is_high ? 0 : HEIGHTLESS);
}

int mend_geometry(handle geometry)
{
    if (OGR_GT_Flatten(OGR_G_GetGeometryType(geometry)) == POINT)
        return mend_point(geometry);
    int found = leave_out_empty_parts(geometry) ? HOLLOW : 0;
    found |= mend_positions(geometry, 0);
    return found | (has_ambiguous_rings(geometry) ? AMBIGUOUS : 0);
}

void examine_geometry(struct shapes *shapes, handle geometry)
{
    int type = OGR_G_GetGeometryType(geometry), flat = OGR_GT_Flatten(type);
    double box[4];
    shapes->filled++;
    shapes->counts[flat > 0 && flat < TYPES ? flat : 0]++;
    shapes->has_z |= OGR_GT_HasZ(type);
    shapes->flat += !OGR_GT_HasZ(type);
    shapes->sloping += OGR_GT_HasZ(type) ? count_sloping(geometry, flat) : 0;
    shapes->has_m |= OGR_GT_HasM(type);
    shapes->unmeasured += !OGR_GT_HasM(type);
    OGR_G_GetEnvelope(geometry, box);
    if (!shapes->first_beyond && (fabs(box[0]) > FARTHEST || fabs(box[1]) > FARTHEST || box[2] < -POLE || box[3] > POLE))
        shapes->first_beyond = shapes->features;
    shapes->west = fmin(shapes->west, box[0]);
    shapes->east = fmax(shapes->east, box[1]);
    shapes->south = fmin(shapes->south, box[2]);
    shapes->north = fmax(shapes->north, box[3]);
    size_t envelope = flat == POINT ? 0 : OGR_GT_HasZ(type) ? ENVELOPE + ENVELOPE / 2 : ENVELOPE;
    size_t size = BLOB_HEAD + envelope + (size_t)OGR_G_WkbSize(geometry);
    shapes->longest = size > shapes->longest ? size : shapes->longest;
}

void tell_shapes(const struct shapes *shapes)
{
    static const char *const names[FLAWS] = {"hollow", "nowhere", "heightless", "unclosed", "single", "outlying", "nested", "ambiguous"};
    put(",\"features\":%lld,\"geometries\":%lld,\"has_z\":%s,\"has_m\":%s,\"longest_geometry_bytes\":%zu,"
        "\"flat_geometries\":%lld,\"sloping_areas\":%lld,\"unmeasured_geometries\":%lld,\"first_beyond_degrees\":%lld,"
        "\"labels\":%lld,\"empty_geometries\":%lld,\"flaws\":{",
        (long long)shapes->features, (long long)shapes->filled, shapes->has_z ? "true" : "false",
        shapes->has_m ? "true" : "false", shapes->longest, shapes->has_z ? (long long)shapes->flat : 0,
        (long long)shapes->sloping, shapes->has_m ? (long long)shapes->unmeasured : 0, (long long)shapes->first_beyond,
        (long long)shapes->labels, (long long)shapes->empty);
    for (int flaw = 0, told = 0; flaw < FLAWS; flaw++)
        if (shapes->flaws[flaw].count)
            put("%s\"%s\":[%lld,%lld]", told++ ? "," : "", names[flaw], (long long)shapes->flaws[flaw].count,
                (long long)shapes->flaws[flaw].first);
    put("},\"codes\":{");
    for (int type = 0, told = 0; type < TYPES; type++)
        if (shapes->counts[type])
            put("%s\"%d\":%lld", told++ ? "," : "", type, (long long)shapes->counts[type]);
    put("},\"extent\":");
    if (shapes->filled && isfinite(shapes->west + shapes->south + shapes->east + shapes->north))
        put("[%.17g,%.17g,%.17g,%.17g]", shapes->west, shapes->south, shapes->east, shapes->north);
    else
        put("null");
}
