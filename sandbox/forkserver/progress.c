/* How far a command of a session is. */
#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

enum { REPORT_MS = 250, REPORTS_AT_ONE_PACE = 1000, PERMILLE = 1000, MOST_OPEN = 64 };
static const uint32_t IS_REPORT = 1u << 31;
static int reports, pipe_to_service;
static int64_t features_done, features_in_all, report_at_ms;
static int followed = -1; /* the descriptor of a file that is read from its beginning to its end */
static double followed_bytes;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Say which share is done, from 0 to 1, unless this was said, or the command began, a moment ago. The moment doubles with
 * every thousand reports, because the service hears only so many from one run. */
static void report(double share)
{
    int64_t now = now_ms();
    if (now < report_at_ms)
        return;
    report_at_ms = now + ((int64_t)REPORT_MS << reports++ / REPORTS_AT_ONE_PACE);
    uint32_t told = IS_REPORT | (uint32_t)(PERMILLE * fmax(0, fmin(share, 1)));
    if (write(pipe_to_service, &told, sizeof told) < 0)
        report_at_ms = INT64_MAX;
}

void report_feature(void)
{
    features_done++;
    if (features_in_all > 0)
        report((double)features_done / (double)features_in_all);
    else if (followed >= 0 && now_ms() >= report_at_ms)
        report((double)lseek(followed, 0, SEEK_CUR) / followed_bytes);
}

void follow_file(const char *path)
{
    struct stat file, found;
    int number = 0, at = -1;
    if (stat(path, &file) != 0)
        return;
    for (int open = 0; open < MOST_OPEN; open++)
        if (fstat(open, &found) == 0 && found.st_dev == file.st_dev && found.st_ino == file.st_ino) {
            number++;
            at = open;
        }
    followed = number == 1 && file.st_size ? at : -1;
    followed_bytes = (double)file.st_size;
}

int report_share(double share, const char *text, void *nothing)
{
    (void)text, (void)nothing;
    report(share);
    return 1;
}

int64_t known_features(handle dataset)
{
    int64_t known = 0;
    for (int number = 0, count = dataset ? GDALDatasetGetLayerCount(dataset) : 0; number < count && known >= 0; number++) {
        handle layer = GDALDatasetGetLayer(dataset, number);
        int64_t found = OGR_L_TestCapability(layer, "FastFeatureCount") ? OGR_L_GetFeatureCount(layer, 0) : -1;
        known = found < 0 ? -1 : known + found;
    }
    return known;
}

int64_t begin_reading(handle dataset)
{
    features_done = 0;
    followed = -1;
    return features_in_all = known_features(dataset);
}

void begin_reports(int answers)
{
    pipe_to_service = answers;
    report_at_ms = now_ms() + REPORT_MS;
}
