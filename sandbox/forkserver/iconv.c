/*
 * Takes the place of the C library's iconv(). In two encodings, Hebrew (Windows-1255) and Vietnamese (1258), it keeps a letter
 * back until the next one shows that it does not combine with it, and returns the last one only if it is called once more
 * without a text. GDAL does not call it so, and each of its texts lost its last letter.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <iconv.h>
#include <string.h>

#define NONE ((iconv_t)-1)
#define FAILED ((size_t)-1)

typedef iconv_t opening(const char *, const char *);
typedef size_t converting(iconv_t, char **, size_t *, char **, size_t *);

static __thread iconv_t keeping_back = NONE;

#pragma GCC visibility push(default)

iconv_t iconv_open(const char *to, const char *from)
{
    static opening *real;
    if (!real)
        real = (opening *)dlsym(RTLD_NEXT, "iconv_open");
    iconv_t opened = real(to, from);
    if (opened != NONE && (strstr(from, "1255") || strstr(from, "1258")))
        keeping_back = opened;
    else if (opened == keeping_back)
        keeping_back = NONE;
    return opened;
}

size_t iconv(iconv_t opened, char **text, size_t *left, char **converted, size_t *room)
{
    static converting *real;
    if (!real)
        real = (converting *)dlsym(RTLD_NEXT, "iconv");
    size_t done = real(opened, text, left, converted, room);
    if (opened == keeping_back && opened != NONE && done != FAILED && left && !*left)
        real(opened, NULL, NULL, converted, room);
    return done;
}

#pragma GCC visibility pop
