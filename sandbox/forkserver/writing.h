/* Bytes that are written to files and pipes; see writing.c. All of these return 0 if that fails. */
#include <stddef.h>

int write_all(int file, const char *bytes, size_t size);

int write_bytes(const char *path, const char *bytes, size_t size);

int write_text(const char *path, const char *text);

/* Write `copy`: `header`, then what follows the first `skipped` bytes of the file at `path`. */
int copy_under_header(const char *path, const char *copy, size_t skipped, const char *header);
