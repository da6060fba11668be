/* What is seen of the geometries of a layer; see geometries.c. */
#pragma once
#include <math.h>
#include <stddef.h>

#include "gdal.h"

enum { TYPES = 32, FLAWS = 8 };

struct shapes {
    int64_t features, filled, empty, flat, sloping, unmeasured, first_beyond, labels, counts[TYPES];
    struct {
        int64_t count, first;
    } flaws[FLAWS];
    int has_z, has_m, may_be_labels, lacks_measures;
    size_t longest;
    double west, east, south, north;
};

#define NO_SHAPES {.west = INFINITY, .south = INFINITY, .east = -INFINITY, .north = -INFINITY}

/* Leave out the measures of a geometry that stand for none in a shapefile: they are no numbers then, or, if there are no others,
 * it has no measures. */
void leave_out_absent(handle geometry);

/* What was wrong with a geometry, one bit for each of its flaws, in the order in which they are told: it had parts without any
 * position, coordinates or elevations that are no finite numbers, or, which is not mended, rings that do not end where they
 * begin, lines or rings of a single position, holes that begin outside of their areas, areas around others of which the first is
 * counterclockwise, rings of which a format that stores nothing but rings would not know what they are, or no position at all. */
enum {
    HOLLOW = 1,
    NOWHERE = 2,
    HEIGHTLESS = 4,
    UNCLOSED = 8,
    SINGLE = 16,
    OUTLYING = 32,
    NESTED = 64,
    AMBIGUOUS = 128,
    EMPTY = 1 << FLAWS,
    NOT_MENDED = UNCLOSED | SINGLE | OUTLYING | NESTED | AMBIGUOUS
};

/* Leave out the parts without any position of a geometry that is not empty, give elevations that are no finite numbers 0, and tell
 * what was wrong. */
int mend_geometry(handle geometry);

/* Look at a geometry that is not empty. */
void examine_geometry(struct shapes *shapes, handle geometry);

/* Put the geometries into the answer, as members of an object. */
void tell_shapes(const struct shapes *shapes);
