/* What is seen of the geometries of a layer; see shapes.c. */
#pragma once
#include <math.h>
#include <stddef.h>

#include "gdal.h"

enum { TYPES = 32 };

struct shapes {
    int64_t features, filled, empty, hollow, first_hollow, flat, sloping, unmeasured, first_beyond, labels, counts[TYPES];
    int has_z, has_m, may_be_labels, lacks_measures;
    size_t longest;
    double west, east, south, north;
};

#define NO_SHAPES {.west = INFINITY, .south = INFINITY, .east = -INFINITY, .north = -INFINITY}

/* Leave out the measures of a geometry that stand for none in a shapefile: they are no numbers then, or, if there are no others,
 * it has no measures. */
void leave_out_absent(handle geometry);

/* Leave out the parts without any position of a geometry that gathers others. Returns whether it had some. */
int leave_out_empty_parts(handle geometry);

/* Look at a geometry that is not empty. */
void see_geometry(struct shapes *shapes, handle geometry);

/* Put the geometries into the answer, as members of an object. */
void tell_shapes(const struct shapes *shapes);
