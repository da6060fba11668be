/* The rings of areas, of which each position is three numbers; see rings.c. */

/* Whether a box is within another: each is its least x, its largest x, and the same of y. */
int is_within(const double *box, const double *around);

/* Find a point in a ring: near its leftmost position, the lowest of several, between those beside it. Returns 0 if all its positions
 * are at one place. */
int find_inside(const double *at, int count, double *x, double *y);

int is_in_ring(const double *at, int count, double x, double y);
