/*
 * Copies a workbook with other codes of formats. What is packed in it stays as it is; the new styles follow it, stored as they
 * are, and the directory of the ZIP archive lists them in place of the former ones. Archives that are larger than their plain
 * directory can say, or have anything unusual in it, are left to service/engine/jailed/styles.py.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapped_file.h"
#include "workbook.h"
#include "workbook_styles.h"
#include "xml_tags.h"

enum { ENTRY = 46, ENDING = 22, LONGEST_REMARK = 65535, SHORT = 2, LONG = 4 };
enum { VERSION = 20, FIRST_DAY = 1 << 5 | 1 };
static const char STYLES[] = "styles.xml", PATH[] = "xl/styles.xml", IS_FILE[] = "PK\3\4", IS_ENTRY[] = "PK\1\2", IS_ENDING[] = "PK\5\6";

/* ---- styles ---- */

/* The code in place of the one at `code`; NULL if that stays. */
static const char *replacement(struct tag code, char **codes)
{
    for (; codes[0] && codes[1]; codes += 2)
        if (code.end && strlen(codes[0]) == (size_t)(code.end - code.start) && begins(code.start, code.end, codes[0]))
            return codes[1];
    return NULL;
}

/* Styles with other codes; NULL if there are none. */
static char *restyled(const char *text, size_t size, char **codes, size_t *new_size)
{
    const char *end = text + size, *rest = text, *plain;
    char *made = NULL;
    FILE *to = open_memstream(&made, new_size);
    if (!to)
        return NULL;
    for (const char *at = text; (at = find(at, end, "<numFmt")); at++) {
        struct tag code = attribute(tag_at(at, end, "<numFmt"), "formatCode");
        if (!(plain = replacement(code, codes)))
            continue;
        fwrite(rest, 1, (size_t)(code.start - rest), to);
        fputs(plain, to);
        rest = code.end;
    }
    fwrite(rest, 1, (size_t)(end - rest), to);
    return fclose(to) == 0 ? made : NULL;
}

/* ---- the archive ---- */

static uint32_t get(const char *at, int size)
{
    uint32_t number = 0;
    while (size--)
        number = number << 8 | (unsigned char)at[size];
    return number;
}

static void write_number(FILE *to, uint32_t number, int size)
{
    for (; size--; number >>= 8)
        fputc((int)(number & 0xff), to);
}

static uint32_t checksum(const char *bytes, size_t size)
{
    uint32_t sum = UINT32_MAX;
    for (size_t at = 0; at < size; at++) {
        sum ^= (unsigned char)bytes[at];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
    }
    return ~sum;
}

/* Where the directory of an archive ends; NULL if it is not followed by its plain ending alone. */
static const char *end_of_directory(struct mapped file, const char **directory)
{
    const char *last = file.start + file.size - ENDING;
    const char *least = file.size > ENDING + LONGEST_REMARK ? last - LONGEST_REMARK : file.start;
    for (const char *at = last; file.size >= ENDING && at >= least; at--) {
        if (memcmp(at, IS_ENDING, LONG) != 0)
            continue;
        uint64_t size = get(at + 12, LONG), offset = get(at + 16, LONG);
        *directory = file.start + offset;
        return offset + size == (uint64_t)(at - file.start) ? at : NULL;
    }
    return NULL;
}

/* What the file itself and its entry in the directory say of styles that are stored. */
static void write_description(FILE *to, const char *styles, size_t size)
{
    write_number(to, VERSION, SHORT);
    for (int number = 0; number < 3; number++) /* no flags, not compressed, midnight */
        write_number(to, 0, SHORT);
    write_number(to, FIRST_DAY, SHORT);
    write_number(to, checksum(styles, size), LONG);
    write_number(to, (uint32_t)size, LONG);
    write_number(to, (uint32_t)size, LONG);
    write_number(to, sizeof PATH - 1, LONG); /* and nothing further */
}

/* Copy the directory but for the entry of the styles; return the number of entries, or 0 if it is unusual. */
static int copy_entries(FILE *to, const char *at, const char *end)
{
    int copied = 0, left_out = 0;
    while (end - at >= ENTRY && memcmp(at, IS_ENTRY, LONG) == 0) {
        size_t name = get(at + 28, SHORT), size = ENTRY + name + get(at + 30, SHORT) + get(at + 32, SHORT);
        if (size > (size_t)(end - at))
            return 0;
        if (name == sizeof PATH - 1 && memcmp(at + ENTRY, PATH, name) == 0)
            left_out++;
        else if (fwrite(at, size, 1, to) == 1)
            copied++;
        at += size;
    }
    return at == end && left_out == 1 ? copied : 0;
}

static int write_copy(FILE *to, struct mapped file, const char *styles, size_t size)
{
    const char *directory, *end = end_of_directory(file, &directory);
    if (!end || file.size > INT32_MAX || size > INT32_MAX)
        return 0;
    size_t offset = (size_t)(directory - file.start);
    fwrite(file.start, 1, offset, to);
    fwrite(IS_FILE, 1, LONG, to);
    write_description(to, styles, size);
    fwrite(PATH, 1, sizeof PATH - 1, to);
    fwrite(styles, 1, size, to);
    long begins_at = ftell(to);
    int entries = copy_entries(to, directory, end);
    fwrite(IS_ENTRY, 1, LONG, to);
    write_number(to, VERSION, SHORT);
    write_description(to, styles, size);
    for (int number = 0; number < 5; number++) /* no remark, the first disk, no attributes */
        write_number(to, 0, SHORT);
    write_number(to, (uint32_t)offset, LONG);
    fwrite(PATH, 1, sizeof PATH - 1, to);
    long ends_at = ftell(to);
    fwrite(IS_ENDING, 1, LONG, to);
    write_number(to, 0, LONG);
    write_number(to, (uint32_t)entries + 1, SHORT);
    write_number(to, (uint32_t)entries + 1, SHORT);
    write_number(to, (uint32_t)(ends_at - begins_at), LONG);
    write_number(to, (uint32_t)begins_at, LONG);
    write_number(to, 0, SHORT);
    return entries > 0 && entries < UINT16_MAX;
}

int copy_with_formats(const char *file, const char *copy, char **codes)
{
    size_t size = 0, new_size = 0;
    char *text = text_of_part(file, STYLES, &size), *styles = text ? restyled(text, size, codes, &new_size) : NULL;
    struct mapped workbook = map_file(file);
    FILE *to = styles && workbook.size ? fopen(copy, "wbe") : NULL;
    int ok = to && write_copy(to, workbook, styles, new_size) && !ferror(to);
    if (to)
        ok &= fclose(to) == 0;
    if (to && !ok)
        unlink(copy);
    unmap_file(&workbook);
    free(styles);
    free(text);
    return ok;
}
