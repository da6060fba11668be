/*
 * Turns the holes of areas with elevations in a result in Shapefile: GDAL 3.6 writes them in the direction of areas, unless all
 * positions of both have one elevation. A program of ours does the same without a session (`shape_rings.py`).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdal.h"
#include "gdal_messages.h"
#include "mapped_file.h"
#include "postprocessing.h"
#include "rings.h"

enum { SHP_HEADER = 100, RECORD_HEAD = 8, WORD = 2, AREAS_IN_SPACE = 15, SIZES_AT = 36, STARTS_AT = 44, RANGE_BYTES = 16 };

struct part {
    double box[4], x, y, twice;
    int start, count, is_ring, depth;
};

/* Take the positions of a ring from `places`, where each is two numbers. */
static void take_ring(struct part *part, double *at, const char *places)
{
    double *box = part->box;
    box[0] = box[2] = INFINITY;
    box[1] = box[3] = -INFINITY;
    part->twice = 0;
    part->depth = 0;
    for (int number = 0; number < part->count; number++) {
        memcpy(at + 3 * number, places + 2 * sizeof *at * (size_t)number, 2 * sizeof *at);
        box[0] = fmin(box[0], at[3 * number]);
        box[1] = fmax(box[1], at[3 * number]);
        box[2] = fmin(box[2], at[3 * number + 1]);
        box[3] = fmax(box[3], at[3 * number + 1]);
        const double *last = at + 3 * (number ? number - 1 : 0), *here = at + 3 * number;
        part->twice += (last[0] - at[0]) * (here[1] - at[1]) - (here[0] - at[0]) * (last[1] - at[1]);
    }
    part->is_ring = part->count > 0 && find_inside(at, part->count, &part->x, &part->y);
}

static void turn(char *values, size_t size, int count)
{
    char kept[2 * sizeof(double)];
    for (int number = 0; number < count / 2; number++) {
        char *one = values + size * (size_t)number, *other = values + size * (size_t)(count - 1 - number);
        memcpy(kept, one, size);
        memcpy(one, other, size);
        memcpy(other, kept, size);
    }
}

static int by_left(const void *one, const void *other)
{
    double left = (*(struct part *const *)one)->box[0], right = (*(struct part *const *)other)->box[0];
    return (left > right) - (left < right);
}

/* Count in how many others those rings are that go around as areas do. Goes from left to right, so that rings beside each other are
 * not compared. */
static void count_around(struct part *rings, size_t parts, const double *at)
{
    struct part **ordered = calloc(parts, sizeof *ordered), **near = calloc(parts, sizeof *near);
    size_t count = 0, waiting = 0, nearby = 0;
    for (size_t number = 0; ordered && near && number < parts; number++)
        if (rings[number].is_ring)
            ordered[count++] = rings + number;
    if (count)
        qsort(ordered, count, sizeof *ordered, by_left);
    for (size_t number = 0; number < count; number++) {
        struct part *inner = ordered[number];
        size_t kept = 0;
        if (inner->twice >= 0)
            continue;
        while (waiting < count && ordered[waiting]->box[0] <= inner->box[0])
            near[nearby++] = ordered[waiting++];
        for (size_t each = 0; each < nearby; each++) {
            struct part *outer = near[each];
            if (outer->box[1] < inner->box[0])
                continue;
            near[kept++] = outer;
            if (outer != inner && is_within(inner->box, outer->box))
                inner->depth += is_in_ring(at + 3 * (size_t)outer->start, outer->count, inner->x, inner->y);
        }
        nearby = kept;
    }
    free(ordered);
    free(near);
}

/* Turn the rings of a shape that are in an odd number of others and go around as areas do. Returns whether there are any. */
static int turn_rings(char *shape, size_t size)
{
    size_t parts = size > STARTS_AT ? little(shape + SIZES_AT) : 0, points = parts ? little(shape + SIZES_AT + 4) : 0;
    size_t places_at = STARTS_AT + 4 * parts, heights_at = places_at + 16 * points + RANGE_BYTES;
    size_t measures_at = heights_at + 8 * points + RANGE_BYTES;
    int turned = 0;
    if (parts < 2 || parts > size || points > size || heights_at + 8 * points > size)
        return 0;
    struct part *rings = calloc(parts, sizeof *rings);
    double *at = calloc(points, 3 * sizeof *at);
    for (size_t number = 0; rings && at && number < parts; number++) {
        uint32_t start = little(shape + STARTS_AT + 4 * number), end = number + 1 < parts ? little(shape + STARTS_AT + 4 * number + 4) : (uint32_t)points;
        if (start <= end && end <= points) {
            rings[number].start = (int)start;
            rings[number].count = (int)(end - start);
        }
        take_ring(rings + number, at + 3 * (size_t)rings[number].start, shape + places_at + 16 * (size_t)rings[number].start);
    }
    if (rings && at)
        count_around(rings, parts, at);
    for (size_t number = 0; rings && at && number < parts; number++) {
        size_t start = (size_t)rings[number].start;
        if (rings[number].depth % 2 == 0)
            continue;
        turned = 1;
        turn(shape + places_at + 16 * start, 16, rings[number].count);
        turn(shape + heights_at + 8 * start, 8, rings[number].count);
        if (measures_at + 8 * points <= size)
            turn(shape + measures_at + 8 * start, 8, rings[number].count);
    }
    free(rings);
    free(at);
    return turned;
}

int turn_holes(const char *shapes)
{
    FILE *file = fopen(shapes, "r+e");
    char head[RECORD_HEAD], *shape = NULL;
    long at = SHP_HEADER;
    if (!file || fseek(file, 0, SEEK_END)) {
        keep_message(FAILURE, errno, strerror(errno));
        return 0;
    }
    for (long end = ftell(file); at + RECORD_HEAD <= end;) {
        fseek(file, at, SEEK_SET);
        if (fread(head, 1, sizeof head, file) != sizeof head)
            break;
        const unsigned char *words = (const unsigned char *)head + 4;
        size_t size = ((size_t)words[0] << 24 | (size_t)words[1] << 16 | (size_t)words[2] << 8 | words[3]) * WORD;
        char *room = size <= (size_t)(end - at - RECORD_HEAD) ? realloc(shape, size + 1) : NULL;
        if (!room || fread(shape = room, 1, size, file) != size)
            break;
        if (size > 4 && little(shape) == AREAS_IN_SPACE && turn_rings(shape, size)) {
            fseek(file, at + RECORD_HEAD, SEEK_SET);
            fwrite(shape, 1, size, file);
        }
        at += RECORD_HEAD + (long)size;
    }
    free(shape);
    int ok = !ferror(file);
    if (fclose(file) == 0 && ok)
        return 1;
    keep_message(FAILURE, errno, strerror(errno));
    return 0;
}
