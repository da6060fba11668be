/* A file that is read from its beginning to its end without holding all of it in memory; see mapped_file.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct mapped {
    const char *start;
    size_t size, passed;
};

/* Map a file; one that is empty or cannot be mapped has no bytes. */
struct mapped map_file(const char *path);

/* Map the file beside `name` with another extension. */
struct mapped map_beside(const char *name, const char *extension);

/* The four bytes from `from` on as a number, of which the first is the smallest part. */
uint32_t little(const char *from);

/* Give back the memory of the bytes before `at`, from time to time. They can still be read. */
void pass(struct mapped *file, const char *at);

void unmap_file(const struct mapped *file);
