/* Maps files to read. Mapped pages count as memory of the run, so those that were read are given back. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mapped_file.h"

enum { WINDOW = 4 << 20, LONGEST_NAME = 4096 };

struct mapped map_file(const char *path)
{
    struct stat found = {0};
    struct mapped file = {.start = ""}; /* what is empty has a beginning, too */
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0)
        return file;
    if (fstat(opened, &found) == 0 && found.st_size > 0) {
        void *mapped = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, opened, 0);
        if (mapped != MAP_FAILED)
            file = (struct mapped){.start = mapped, .size = (size_t)found.st_size};
    }
    close(opened);
    return file;
}

struct mapped map_beside(const char *name, const char *extension)
{
    char path[LONGEST_NAME] = "";
    const char *point = strrchr(name, '.');
    if (point && (size_t)(point - name) + strlen(extension) < LONGEST_NAME) {
        memcpy(path, name, (size_t)(point - name));
        strcpy(path + (point - name), extension);
    }
    return map_file(path);
}

uint32_t little(const char *from)
{
    const unsigned char *at = (const unsigned char *)from;
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

void pass(struct mapped *file, const char *at)
{
    size_t read = (size_t)(at - file->start);
    if (read < file->passed + WINDOW)
        return;
    read -= read % WINDOW;
    madvise((char *)file->start + file->passed, read - file->passed, MADV_DONTNEED);
    file->passed = read;
}

void unmap_file(const struct mapped *file)
{
    if (file->size)
        munmap((char *)file->start, file->size);
}
