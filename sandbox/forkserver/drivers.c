/*
 * What main() calls first and last, in place of GDAL's own: drivers are registered once, for all children, and a child ends
 * with _exit(), so that nothing needs to be freed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "drivers.h"
#include "gdal.h"

int are_registered;

/* Drivers are not destroyed: freeing their memory would copy the pages that contain it. */
static void deregister(handle driver)
{
    if (driver)
        GDALDeregisterDriver(driver);
}

/* In a child, the only effect of registering the drivers again: the named ones are skipped. Names are separated by commas
 * or, without any comma, by `separators`. */
static void skip_drivers(const char *option, const char *separators)
{
    const char *names = CPLGetConfigOption(option, NULL);
    char *rest = names ? strdup(names) : NULL, *name;
    const char *separator = names && strchr(names, ',') ? "," : separators;
    while ((name = strsep(&rest, separator)))
        deregister(GDALGetDriverByName(name));
}

static void register_drivers(const char *function)
{
    if (are_registered) {
        skip_drivers("GDAL_SKIP", " ");
        skip_drivers("OGR_SKIP", ",");
        return;
    }
    void (*real)(void) = (void (*)(void))dlsym(RTLD_NEXT, function);
    if (real)
        real();
}

/* These take the place of GDAL's: all else of this library is hidden (`-fvisibility`). */
#pragma GCC visibility push(default)

void GDALAllRegister(void)
{
    register_drivers("GDALAllRegister");
}

void OGRRegisterAll(void)
{
    register_drivers("OGRRegisterAll");
}

void GDALDestroy(void) {}
void GDALDestroyDriverManager(void) {}
void OGRCleanupAll(void) {}

#pragma GCC visibility pop

void prepare_drivers(void)
{
    OGRRegisterAll();
    if (!GDALGetDriverCount)
        return;
    for (int number = GDALGetDriverCount() - 1; number >= 0; number--)
        if (!GDALGetMetadataItem(GDALGetDriver(number), "DCAP_VECTOR", NULL))
            deregister(GDALGetDriver(number));
}
