/* Compares the rings of areas. Each position is three numbers. */
#include "rings.h"

/* How far a point in a ring is from one of its corners, as a part of the way between the corners beside it. */
static const double NEAR = 1. / 64;

int is_within(const double *box, const double *around)
{
    return around[0] <= box[0] && box[1] <= around[1] && around[2] <= box[2] && box[3] <= around[3];
}

static int is_apart(const double *at, int one, int other)
{
    return at[3 * one] != at[3 * other] || at[3 * one + 1] != at[3 * other + 1];
}

int find_inside(const double *at, int count, double *x, double *y)
{
    int left = 0, before, behind;
    for (int number = 1; number < count; number++)
        if (at[3 * number] < at[3 * left] || (at[3 * number] == at[3 * left] && at[3 * number + 1] < at[3 * left + 1]))
            left = number;
    for (before = 1; before < count && !is_apart(at, left, (left + count - before) % count);)
        before++;
    for (behind = 1; behind < count && !is_apart(at, left, (left + behind) % count);)
        behind++;
    if (before >= count)
        return 0;
    const double *one = at + 3 * ((left + count - before) % count), *other = at + 3 * ((left + behind) % count);
    *x = at[3 * left] + ((one[0] + other[0]) / 2 - at[3 * left]) * NEAR;
    *y = at[3 * left + 1] + ((one[1] + other[1]) / 2 - at[3 * left + 1]) * NEAR;
    return 1;
}

int is_in_ring(const double *at, int count, double x, double y)
{
    int found = 0;
    for (int number = 0, last = count - 1; number < count; last = number++) {
        const double *one = at + 3 * number, *other = at + 3 * last;
        if ((one[1] > y) != (other[1] > y) && x < (other[0] - one[0]) * (y - one[1]) / (other[1] - one[1]) + one[0])
            found = !found;
    }
    return found;
}
