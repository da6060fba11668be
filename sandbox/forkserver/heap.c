/*
 * Prepares the heap for children. Each page of it that a child writes to is copied first, and each page of it costs every
 * fork and every exit. What libraries have freed while they were prepared lies scattered over all of them, so the server takes
 * these pieces, for good: a child then allocates at the end of the heap, in few pages. The heap itself moves into large pages,
 * of which a fork copies three or four entries in place of a thousand; the kernel divides one that a child writes to.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

/* Only the GNU library has it. */
extern __attribute__((weak)) int malloc_trim(size_t);

enum { LARGE_PAGE = 2 << 20, UNIT = 16, SMALL = 1024, MOST = 64 * SMALL };

/* Take every free piece of a size, until the heap grows beyond `end`. */
static void take_pieces(size_t size, const char *end)
{
    char *piece;
    while ((piece = malloc(size)) && piece < end)
        continue;
    free(piece);
}

/* From large to small, for malloc() divides pieces. */
static void take_all_pieces(const char *end)
{
    for (size_t size = MOST; size > SMALL; size /= 2)
        take_pieces(size, end);
    for (size_t size = SMALL; size; size -= UNIT)
        take_pieces(size, end);
}

/* Move the heap, from its end down, as far as it fills large pages; nothing happens if the host has none. */
static void move_heap(void)
{
    volatile char *last = (char *)sbrk(0) - 1;
    uintptr_t rest = ((uintptr_t)last + 1) % LARGE_PAGE;
    if (sbrk(rest ? (intptr_t)(LARGE_PAGE - rest) : 0) == (void *)-1)
        return;
    char *page = sbrk(0);
    *last = *last; /* a large page is not made of nothing */
    do
        page -= LARGE_PAGE;
    while (madvise(page, LARGE_PAGE, MADV_COLLAPSE) == 0);
}

void settle_heap(void)
{
    if (!malloc_trim)
        return;
    malloc_trim(0);
    take_all_pieces(sbrk(0));
    malloc_trim(0);
    move_heap();
}
