/*
 * What was read of the table that was loaded last. A table copies what it is given, so it is given its features once its columns
 * are certain.
 */
#pragma once
#include "gdal.h"

struct column;

/* Have the next features wait for a table, once none wait for another one. */
void begin_waiting(handle layer);

/* Have a feature wait, without what a copy in memory would not have. */
void wait_with(handle feature, const struct column *columns, int count);

/* A feature that waits, by how many began to wait since, and it. */
handle waiting_feature(size_t back);

/* Forget the latest features that wait. */
void drop_waiting(size_t features);

/* The next feature of a table that is held, which the caller owns; its features may wait for it. */
handle next_held(handle layer);

/* Put a feature into a layer: its geometry, and each of its `count` values at the position that `map` has for it, unless that
 * is negative. They pass through `carrier`, a feature of the layer, which leaves those of the feature before in their place to
 * be freed: the layer copies what it is given, and one copy is enough. Returns 0 if that fails. */
int move_feature(handle feature, const int *map, int count, handle carrier, handle layer);

/* Put the features that wait into their table. Returns 0 if that fails. */
int store_waiting(void);
