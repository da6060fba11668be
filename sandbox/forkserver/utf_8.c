/* Decodes UTF-8. Most texts are known to be valid in a fraction of the time that GDAL takes, which decides about all others. */
#include <string.h>

#include "gdal.h"
#include "utf_8.h"

int32_t next_character(const unsigned char **at, const unsigned char *end)
{
    static const int32_t least[] = {0, 0x80, 0x800, 0x10000};
    unsigned char first = *(*at)++;
    int more = first < 0x80 ? 0 : first >> 5 == 6 ? 1 : first >> 4 == 14 ? 2 : first >> 3 == 30 ? 3 : -1;
    if (more <= 0)
        return more ? -1 : first;
    int32_t code = first & (0x3f >> more);
    for (int number = 0; number < more; number++, (*at)++) {
        if (*at == end || (**at & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (**at & 0x3f);
    }
    return code < least[more] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? -1 : code;
}

/* Where something else than ASCII follows, or a zero, whose byte less one has the highest bit. */
static const unsigned char *past_ascii(const unsigned char *at, const unsigned char *end)
{
    const uint64_t ones = UINT64_MAX / UINT8_MAX, high = ones << 7;
    for (uint64_t eight; end - at >= (ptrdiff_t)sizeof eight; at += sizeof eight) {
        memcpy(&eight, at, sizeof eight);
        if ((eight | (eight - ones)) & high)
            break;
    }
    while (at < end && *at && *at < 0x80)
        at++;
    return at;
}

int is_utf_8(const char *start, size_t size)
{
    const unsigned char *at = (const unsigned char *)start, *end = at + size;
    while ((at = past_ascii(at, end)) < end) {
        int32_t code = next_character(&at, end);
        if (code <= 0 || code == 0xfffe || code == 0xffff) /* these are no characters */
            return size <= INT32_MAX && CPLIsUTF8(start, (int)size);
    }
    return 1;
}
