/* Files of separated values, looked at as a whole; see separated.c. */
#include <stddef.h>

#pragma GCC visibility push(hidden)

/* Put what is in `file` into the answer; `known` is its delimiter, or empty where that is to be found out. */
void look_at_separated(const char *file, const char *known);

/* Whether the calendar has a day that is written as four, two and two digits with something between them. */
int is_in_calendar(const char *day);

/* Write `copy`: `header`, then what follows the first `skipped` bytes of `file`. Returns 0 where that fails. */
int copy_under_header(const char *file, const char *copy, size_t skipped, const char *header);

/* Write `text` to a file. Returns 0 where that fails. */
int write_text(const char *path, const char *text);

#pragma GCC visibility pop
