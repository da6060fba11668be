/* Seeks a text in a part of an archive, of which it keeps one piece at a time in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gdal.h"
#include "markup.h"
#include "seeking.h"

enum { PIECE = 1 << 20, LONGEST_PATH = 512 };

int part_holds(const char *file, const char *part, const char *text)
{
    char path[LONGEST_PATH], *piece = malloc(PIECE);
    size_t kept = strlen(text), rest = 0, got;
    int holds = 0;
    if (!piece || kept >= PIECE)
        _exit(1);
    snprintf(path, sizeof path, "/vsizip/%s/%s", file, part);
    handle opened = VSIFOpenL(path, "rb");
    while (opened && !holds && (got = VSIFReadL(piece + rest, 1, PIECE - rest, opened))) {
        size_t size = rest + got;
        holds = find(piece, piece + size, text) != NULL;
        rest = size < kept ? size : kept;
        memmove(piece, piece + size - rest, rest);
    }
    if (opened)
        VSIFCloseL(opened);
    free(piece);
    return holds;
}
