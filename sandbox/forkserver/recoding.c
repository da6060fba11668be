/*
 * Takes the place of GDAL's CPLRecode() for the code pages of Windows and DOS. It opens a conversion for each text and clears 32 KiB
 * for it, which takes several times as long as to convert it. A text that cannot be converted as a whole is left to GDAL's own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>

#define NONE ((iconv_t)-1)
#define FAILED ((size_t)-1)

enum { MOST_BYTES_FOR_ONE = 4, LONGEST_NAME = 15 };
typedef char *recoding(const char *, const char *, const char *);

/* The conversion that was opened last. */
static __thread struct {
    iconv_t opened;
    char from[LONGEST_NAME + 1], to[LONGEST_NAME + 1];
} last = {.opened = NONE};

/* Whether GDAL leaves a conversion to the C library; it has a table of its own for page 437. */
static int is_of_page(const char *from, const char *to)
{
    static const char UTF8[] = "UTF-8", PAGE[] = "CP";
    const char *page = strcmp(to, UTF8) == 0 ? from : strcmp(from, UTF8) == 0 ? to : "";
    return strncmp(page, PAGE, strlen(PAGE)) == 0 && strcmp(page, "CP437") != 0 && strlen(page) <= LONGEST_NAME;
}

static int open_conversion(const char *from, const char *to)
{
    if (strcmp(last.from, from) != 0 || strcmp(last.to, to) != 0) {
        if (last.opened != NONE)
            iconv_close(last.opened);
        strcpy(last.from, from);
        strcpy(last.to, to);
        last.opened = iconv_open(to, from);
    }
    return last.opened != NONE;
}

/* Convert a text; NULL if that fails. */
static char *convert(const char *text)
{
    size_t left = strlen(text), room = MOST_BYTES_FOR_ONE * left;
    char *converted = malloc(room + 1), *at = (char *)text, *end = converted;
    iconv(last.opened, NULL, NULL, NULL, NULL); /* the text before may have ended within a letter */
    if (!converted || iconv(last.opened, &at, &left, &end, &room) == FAILED || iconv(last.opened, NULL, NULL, &end, &room) == FAILED) {
        free(converted);
        return NULL;
    }
    *end = 0;
    return converted;
}

#pragma GCC visibility push(default)

char *CPLRecode(const char *text, const char *from, const char *to)
{
    static recoding *real;
    if (!real)
        real = (recoding *)dlsym(RTLD_NEXT, "CPLRecode");
    char *converted = is_of_page(from, to) && open_conversion(from, to) ? convert(text) : NULL;
    return converted ? converted : real(text, from, to);
}

#pragma GCC visibility pop
