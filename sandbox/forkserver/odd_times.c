/*
 * Counts times whose zone the driver changes or drops, in the bytes of a file. The rules are those of the expressions in
 * service/engine/jailed/zones.py.
 */
#define _GNU_SOURCE
#include <string.h>

#include "mapped_file.h"
#include "odd_times.h"
#include "text_kinds.h"

enum { HOUR_BYTES = 13, TWO_DIGITS = 3, LONGEST = 64, MOST_DECIMALS = 20 };

/* Whether a text that begins with the minutes of a time goes on with a zone that is no quarter of an hour. */
static int has_odd_zone(const char *text)
{
    const char *at = past_pattern(text, ":99"), *seconds = at ? past_pattern(at, ":99") : NULL;
    if (seconds) {
        const char *decimals = seconds + (*seconds == '.'), *past = past_digits(decimals);
        at = decimals > seconds && past > decimals && past - decimals <= MOST_DECIMALS ? past : seconds;
    }
    const char *zone = at && (*at == '+' || *at == '-') ? past_pattern(at + 1, "99") : NULL;
    const char *minutes = zone ? zone + (*zone == ':') : NULL, *end = minutes ? past_pattern(minutes, "59") : NULL;
    if (!end || past_digits(end) > end)
        return 0;
    return minutes[1] != (strchr("03", *minutes) ? '0' : '5') || !strchr("0134", *minutes);
}

/* Whether the bytes before the minutes of a time are its date and hour. */
static int is_hour(const char *text)
{
    const char *end = past_pattern(text, "9999/99/99");
    return end && (*end == 'T' || *end == ' ') && past_pattern(end + 1, "99");
}

int64_t count_odd_times(const char *name)
{
    struct mapped file = map_file(name);
    const char *at = file.start, *end = at + file.size;
    int64_t found = 0;
    for (; (at = memchr(at, ':', (size_t)(end - at))); at++) {
        char text[HOUR_BYTES + LONGEST + 1] = "";
        if (at - file.start < HOUR_BYTES || (at[-TWO_DIGITS] != 'T' && at[-TWO_DIGITS] != ' ') || end - at <= TWO_DIGITS ||
            !strchr(":+-", at[TWO_DIGITS]))
            continue;
        size_t left = (size_t)(end - at), size = HOUR_BYTES + (left < LONGEST ? left : LONGEST);
        memcpy(text, at - HOUR_BYTES, size);
        found += is_hour(text) && has_odd_zone(text + HOUR_BYTES);
        pass(&file, at - HOUR_BYTES);
    }
    unmap_file(&file);
    return found;
}
