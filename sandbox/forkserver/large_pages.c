/* Moves the code and constants of a library into large pages, which a copy of this process uses without a page fault. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "large_pages.h"

enum { LARGE_PAGE = 2 << 20 };

static char *round_down(const char *address, size_t unit)
{
    return (char *)((uintptr_t)address & ~(unit - 1));
}

static char *round_up(const char *address, size_t unit)
{
    return round_down(address + unit - 1, unit);
}

static long faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : 0;
}

/*
 * Move code into large pages: a copy in them is made executable and read-only, and then replaces the code in one step. If
 * the host has no large pages, or lets nothing become executable, nothing changes: small anonymous pages would cost every
 * child more than those of the file.
 */
static void move_code(char *from, size_t size)
{
    size_t room = size + LARGE_PAGE;
    char *space = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return;
    char *copy = round_up(space, LARGE_PAGE);
    long before = faults();
    if (madvise(copy, size, MADV_HUGEPAGE) == 0 && memset(copy, 0, size)) {
        int are_large = (size_t)(faults() - before) <= size / LARGE_PAGE;
        memcpy(copy, from, size);
        if (are_large && mprotect(copy, size, PROT_READ | PROT_EXEC) == 0)
            if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, from) == MAP_FAILED)
                _exit(1);
    }
    munmap(space, room);
}

/* The code that holds an address and the constants next to it, from the large page in which the code begins. */
static int move_code_around(struct dl_phdr_info *library, size_t size, void *wanted)
{
    char *address = wanted, *start = NULL, *code = NULL, *end = NULL;
    size_t page = (size_t)getpagesize();
    (void)size;
    for (int number = 0; number < library->dlpi_phnum; number++) {
        const ElfW(Phdr) *part = library->dlpi_phdr + number;
        char *at = (char *)(library->dlpi_addr + part->p_vaddr), *first = round_down(at, page);
        int is_behind_gap = first > end;
        if (part->p_type != PT_LOAD || part->p_flags & PF_W || (is_behind_gap && address < end))
            continue;
        start = is_behind_gap ? first : start;
        code = part->p_flags & PF_X ? first : code;
        end = round_up(at + part->p_memsz, page);
    }
    if (address < start || address >= end)
        return 0;
    char *from = round_down(code, LARGE_PAGE);
    from = from < start ? round_up(start, LARGE_PAGE) : from;
    end = round_down(end, LARGE_PAGE);
    if (from < end)
        move_code(from, (size_t)(end - from));
    return 1;
}

void move_into_large_pages(void *code)
{
    dl_iterate_phdr(move_code_around, code);
}
