/* What is seen of the geometries of a layer; see shapes.c. */
#pragma once
#include <math.h>
#include <stddef.h>

#include "gdal.h"

enum { TYPES = 32 };

struct shapes {
    int64_t features, filled, empty, hollow, first_hollow, nowhere, first_nowhere, heightless, first_heightless, unclosed, first_unclosed, single, first_single, outlying, first_outlying, flat, sloping, unmeasured, first_beyond, labels, counts[TYPES];
    int has_z, has_m, may_be_labels, lacks_measures;
    size_t longest;
    double west, east, south, north;
};

#define NO_SHAPES {.west = INFINITY, .south = INFINITY, .east = -INFINITY, .north = -INFINITY}

/* Leave out the measures of a geometry that stand for none in a shapefile: they are no numbers then, or, if there are no others,
 * it has no measures. */
void leave_out_absent(handle geometry);

/* What was wrong with a geometry: it had parts without any position, coordinates or elevations that are no finite numbers, or,
 * which is not mended, rings that do not end where they begin, lines or rings of a single position, holes that begin outside of
 * their areas, or no position at all. */
enum { HOLLOW = 1, NOWHERE = 2, HEIGHTLESS = 4, UNCLOSED = 8, SINGLE = 16, OUTLYING = 32, EMPTY = 64, NOT_MENDED = UNCLOSED | SINGLE | OUTLYING };

/* Leave out the parts without any position of a geometry that is not empty, give elevations that are no finite numbers 0, and tell
 * what was wrong. */
int mend_geometry(handle geometry);

/* Look at a geometry that is not empty. */
void see_geometry(struct shapes *shapes, handle geometry);

/* Put the geometries into the answer, as members of an object. */
void tell_shapes(const struct shapes *shapes);
