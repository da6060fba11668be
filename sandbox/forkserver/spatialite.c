/*
 * A new database of SpatiaLite has dozens of tables and a hundred triggers of its own, and a library with a thousand functions: to make it
 * takes as long as all else of a small conversion. It is the same for all results, so the server makes it once, in memory, and
 * leaves it open. A child has a copy of its own, adds the layers, and writes it to the file of the result.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "gdal_messages.h"
#include "spatialite.h"
#include "writing.h"

static const char IN_MEMORY[] = "/vsimem/new.sqlite", DRIVER[] = "SQLite", CREATION[] = "-dsco", LOADING[] = "SPATIALITE_LOAD";
static const char *const options_of_new[] = {"SPATIALITE=YES", "INIT_WITH_EPSG=NO", NULL};
/* What was made before is told as made with the result. */
static const char MAKE_NOW[] = "UPDATE spatialite_history SET timestamp = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
static handle made;

static int next_descriptor(void)
{
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    return next;
}

void prepare_spatialite(void)
{
    handle driver = GDALGetDriverByName(DRIVER);
    int next = next_descriptor();
    CPLSetConfigOption(LOADING, "YES");
    made = driver ? GDALCreate(driver, IN_MEMORY, 0, 0, 0, 0, options_of_new) : NULL;
    CPLSetConfigOption(LOADING, NULL);
    if (made && next_descriptor() != next) { /* a version that keeps a file open, which children would share */
        GDALClose(made);
        made = NULL;
    }
}

/* Whether the arguments create a database with these options and no others. */
static int is_of_new(char **arguments)
{
    int found = 0, is_driver = 0;
    for (; arguments[0] && arguments[1]; arguments++) {
        is_driver |= strcmp(arguments[0], "-f") == 0 && strcmp(arguments[1], DRIVER) == 0;
        if (strcmp(arguments[0], CREATION) == 0 && (!options_of_new[found] || strcmp(arguments[1], options_of_new[found++]) != 0))
            return 0;
    }
    return is_driver && !options_of_new[found];
}

static void leave_out_creation(char **arguments)
{
    char **kept = arguments;
    for (; *arguments; arguments++)
        if (strcmp(*arguments, CREATION) == 0)
            arguments++;
        else
            *kept++ = *arguments;
    *kept = NULL;
}

handle take_spatialite(char **arguments)
{
    handle taken = made;
    if (!taken || !is_of_new(arguments))
        return NULL;
    made = NULL;
    leave_out_creation(arguments);
    handle found = GDALDatasetExecuteSQL(taken, MAKE_NOW, NULL, NULL);
    if (found)
        GDALDatasetReleaseResultSet(taken, found);
    return taken;
}

int write_spatialite(const char *target)
{
    uint64_t size;
    const char *bytes = VSIGetMemFileBuffer(IN_MEMORY, &size, 0);
    int ok = bytes && write_bytes(target, bytes, size);
    if (!ok)
        keep_message(FAILURE, errno, strerror(errno));
    return ok;
}
