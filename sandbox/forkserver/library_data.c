/*
 * Moves the data of libraries into a file in memory: what the loader and their constructors have written into them. Hundreds
 * of pages that only this process has would otherwise cost each fork a copy of their entries, and each exit again. Of a file,
 * a child gets the pages that it reads when it reads them, as it does of the code.
 *
 * The mappings are private, so a child that writes to such a page writes to its own copy, and nobody can write to the file.
 * What the loader has made read-only remains so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "library_data.h"

static const int SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

struct file {
    int descriptor;
    off_t size;
    size_t page;
};

struct range {
    char *start, *end;
};

static char *page_of(const struct file *file, const char *address)
{
    return (char *)((uintptr_t)address & ~(file->page - 1));
}

static struct range range_of(const struct dl_phdr_info *library, const ElfW(Phdr) *part)
{
    char *start = (char *)(library->dlpi_addr + part->p_vaddr);
    return (struct range){start, start + part->p_memsz};
}

static int holds_only_zeros(const char *page, size_t size)
{
    return page[0] == 0 && memcmp(page, page + 1, size - 1) == 0;
}

/* Write pages to the end of the file; what is zero takes no room in it. */
static int keep(const struct file *file, struct range pages)
{
    off_t at = file->size;
    for (const char *page = pages.start; page < pages.end; page += file->page, at += (off_t)file->page)
        if (!holds_only_zeros(page, file->page) && pwrite(file->descriptor, page, file->page, at) != (ssize_t)file->page)
            return 0;
    return ftruncate(file->descriptor, at) == 0;
}

/* Map the end of the file in place of pages; what the host refuses to replace stays as it is. */
static void map(struct file *file, struct range pages, int protection)
{
    size_t size = (size_t)(pages.end - pages.start);
    if (size && mmap(pages.start, size, protection, MAP_PRIVATE | MAP_FIXED, file->descriptor, file->size) == MAP_FAILED)
        if (errno != EPERM && errno != EACCES)
            _exit(1);
    file->size += (off_t)size;
}

/* Move a segment, of which the beginning may be read-only. */
static int move_segment(struct file *file, struct range segment, struct range read_only)
{
    struct range pages = {page_of(file, segment.start), page_of(file, segment.end + file->page - 1)};
    char *split = read_only.end ? page_of(file, read_only.end) : pages.start;
    if ((read_only.end && page_of(file, read_only.start) != pages.start) || split > pages.end)
        return 1;
    if (!keep(file, pages))
        return 0;
    map(file, (struct range){pages.start, split}, PROT_READ);
    map(file, (struct range){split, pages.end}, PROT_READ | PROT_WRITE);
    return 1;
}

static int move_library(struct dl_phdr_info *library, size_t size, void *file)
{
    const ElfW(Phdr) *parts = library->dlpi_phdr;
    struct range read_only = {NULL, NULL};
    (void)size;
    for (int number = 0; number < library->dlpi_phnum; number++)
        if (parts[number].p_type == PT_GNU_RELRO)
            read_only = range_of(library, parts + number);
    for (int number = 0; number < library->dlpi_phnum; number++)
        if (parts[number].p_type == PT_LOAD && parts[number].p_flags == (PF_R | PF_W))
            if (!move_segment(file, range_of(library, parts + number), read_only))
                return 1;
    return 0;
}

void move_data_into_file(void)
{
    struct file file = {.descriptor = memfd_create("data", MFD_CLOEXEC | MFD_ALLOW_SEALING), .page = (size_t)getpagesize()};
    if (file.descriptor < 0)
        return;
    dl_iterate_phdr(move_library, &file);
    if (fcntl(file.descriptor, F_ADD_SEALS, SEALS) < 0)
        _exit(1);
    close(file.descriptor);
}
