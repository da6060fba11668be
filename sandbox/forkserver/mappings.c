/*
 * Joins the mappings of libraries. Each of them costs every fork a copy and every exit its end, and a hundred libraries have
 * two of constants each, before and behind their code. Constants that may be executed, as linkers laid them out until 2018,
 * are one mapping with the code. Where the host lets nothing become executable, nothing changes.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mappings.h"

static int join_library(struct dl_phdr_info *library, size_t size, void *page_bytes)
{
    uintptr_t page = *(const uintptr_t *)page_bytes;
    (void)size;
    for (int number = 0; number < library->dlpi_phnum; number++) {
        const ElfW(Phdr) *part = library->dlpi_phdr + number;
        uintptr_t start = library->dlpi_addr + part->p_vaddr, end = start + part->p_memsz, first = start & ~(page - 1);
        if (part->p_type == PT_LOAD && part->p_flags == PF_R)
            mprotect((void *)first, end - first, PROT_READ | PROT_EXEC);
    }
    return 0;
}

void join_mappings(void)
{
    uintptr_t page = (uintptr_t)getpagesize();
    dl_iterate_phdr(join_library, &page);
}
