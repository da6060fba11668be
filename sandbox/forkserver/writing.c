/* Writes bytes to files and pipes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "mapped_file.h"
#include "writing.h"

static int create(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

int write_all(int file, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(file, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return 0;
        bytes += written;
        size -= (size_t)written;
    }
    return 1;
}

int write_bytes(const char *path, const char *bytes, size_t size)
{
    int file = create(path);
    int ok = file >= 0 && write_all(file, bytes, size);
    return close(file) == 0 && ok;
}

int write_text(const char *path, const char *text)
{
    return write_bytes(path, text, strlen(text));
}

int copy_under_header(const char *path, const char *copy, size_t skipped, const char *header)
{
    struct mapped file = map_file(path);
    int made = create(copy), ok = file.size && made >= 0 && skipped <= file.size && write_all(made, header, strlen(header)) &&
                                  write_all(made, file.start + skipped, file.size - skipped);
    unmap_file(&file);
    return close(made) == 0 && ok;
}
