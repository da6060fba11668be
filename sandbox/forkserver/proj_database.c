/*
 * PROJ's database: the server has opened it before it forks, and each child opens it again, because the file descriptions of
 * a fork share flags, locks and leases.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gdal.h"
#include "proj_database.h"

enum { MOST_DESCRIPTORS = 1024, UNKNOWN = -1 };

static char database_path[PATH_MAX];
static struct stat database_status;
/* The descriptor with which PROJ reads it, and one for the next child only. */
static int database = UNKNOWN, own_database = UNKNOWN;

static int is_database(const struct stat *found)
{
    return found->st_dev == database_status.st_dev && found->st_ino == database_status.st_ino;
}

void find_database(void)
{
    handle context = proj_context_create();
    const char *path = proj_context_get_database_path(context);
    if (path && strlen(path) < sizeof database_path && stat(path, &database_status) == 0)
        strcpy(database_path, path);
    proj_context_destroy(context);
}

void open_own_database(void)
{
    struct stat found;
    if (database == UNKNOWN)
        return;
    own_database = open(database_path, O_RDONLY | O_CLOEXEC);
    if (own_database < 0 || fstat(own_database, &found) < 0 || !is_database(&found))
        _exit(1);
}

int knows_its_descriptors(int link)
{
    struct stat found;
    for (int number = STDERR_FILENO + 1; number < MOST_DESCRIPTORS; number++) {
        if (number == link || fstat(number, &found) < 0)
            continue;
        if (database != UNKNOWN || !database_path[0] || !is_database(&found))
            return 0;
        database = number;
    }
    return 1;
}

int take_own_database(void)
{
    return database == UNKNOWN ? 0 : dup3(own_database, database, O_CLOEXEC);
}

void close_own_database(void)
{
    close(own_database);
}
