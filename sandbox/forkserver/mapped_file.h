/* A file that is read from its beginning to its end without holding all of it in memory; see mapped_file.c. */
#include <stddef.h>

struct mapped {
    const char *start;
    size_t size, passed;
};

/* Map a file; one that is empty or cannot be mapped has no bytes. */
struct mapped map_file(const char *path);

/* Give back the memory of the bytes before `at`, from time to time. They can still be read. */
void pass(struct mapped *file, const char *at);

void unmap_file(const struct mapped *file);
