/* What a run reports in a command that takes a day, in a clock that every look moves on by a quarter of a second. */
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>

enum { LOOK_MS = 250, DAY_MS = 24 * 60 * 60 * 1000 };
static int64_t elapsed_ms;

static int look_at_clock(clockid_t clock, struct timespec *now)
{
    (void)clock;
    elapsed_ms += LOOK_MS;
    *now = (struct timespec){.tv_sec = elapsed_ms / 1000, .tv_nsec = elapsed_ms % 1000 * 1000000};
    return 0;
}

#define clock_gettime look_at_clock
#include "../../sandbox/forkserver/progress.c"

int main(void)
{
    begin_reports(STDOUT_FILENO);
    while (elapsed_ms < DAY_MS)
        report((double)elapsed_ms / DAY_MS);
    return 0;
}
