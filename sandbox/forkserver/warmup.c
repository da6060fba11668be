/*
 * Does once, in the server, what libraries prepare at their first use, so that children inherit it. PROJ keeps prepared
 * statements and definitions; reading one definition takes longer than converting a small file. The only file that is read
 * is PROJ's database, and nothing comes from a client.
 */
#include <stdlib.h>

#include "crs.h"
#include "crs_definitions.h"
#include "gdal.h"
#include "spatialite.h"
#include "warmup.h"

enum { DEGREES = 4326 };

/* Systems between which and degrees files are converted most: for each, PROJ looks up, compares and prepares every operation
 * of the area, and searches for its names in a .prj. None of these makes PROJ open the grid of a datum, wherever it is
 * installed, as EPSG:27700 does: a server with such a file open would not serve. */
static const int usual[] = {DEGREES, 3857, 4258, 3035, 25831, 25832, 25833, 32631, 32632, 32633, 2056, 2154, 2180, 28992};

/* GDAL keeps a destroyed transformation for the next that needs the same. */
static void warm_up_transformation(handle from, handle to)
{
    handle made = OCTNewCoordinateTransformation(from, to);
    if (made)
        OCTDestroyCoordinateTransformation(made);
}

static void warm_up_systems(handle degrees)
{
    for (size_t number = 0; number < sizeof usual / sizeof *usual; number++) {
        handle other = system_of_code(usual[number]);
        if (!other)
            continue;
        warm_up_transformation(degrees, other);
        warm_up_transformation(other, degrees);
        keep_definition(other);
        OSRDestroySpatialReference(other);
    }
}

/* The searches for the code of a definition without one, such as that of any .prj, and of the system of MapInfo, for which
 * PROJ reads the names of all datums. */
static void warm_up_search(handle degrees)
{
    const char *const esri[] = {"FORMAT=WKT1_ESRI", NULL};
    char *definition = NULL;
    int count = 0, *confidences = NULL;
    handle read = OSRNewSpatialReference(NULL);
    if (OSRExportToWktEx(degrees, &definition, esri) == 0 && OSRImportFromESRI(read, (char *[]){definition, NULL}) == 0) {
        OSRFreeSRSArray(OSRFindMatches(read, NULL, &count, &confidences));
        free(confidences);
        OSRImportFromMICoordSys(read, "Earth Projection 1, 104");
        OSRAutoIdentifyEPSG(read);
    }
    OSRDestroySpatialReference(read);
    free(definition);
}

/* A new GeoPackage, whose driver reads the definitions of all systems for tiles. */
static void warm_up_geopackage(handle degrees)
{
    const char *path = "/vsimem/warmup.gpkg";
    handle driver = GDALGetDriverByName("GPKG"), made = driver ? GDALCreate(driver, path, 0, 0, 0, 0, NULL) : NULL;
    if (!made)
        return;
    GDALDatasetCreateLayer(made, "warmup", degrees, POINT, NULL);
    GDALClose(made);
    GDALDeleteDataset(driver, path);
}

/* Do what most runs will do; skip silently what is impossible here. */
void warm_up(void)
{
    if (!OSRNewSpatialReference || !OSRFindMatches)
        return;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    handle degrees = system_of_code(DEGREES);
    if (degrees) {
        warm_up_search(degrees);
        warm_up_systems(degrees);
        warm_up_geopackage(degrees);
        prepare_spatialite();
        OSRDestroySpatialReference(degrees);
    }
    CPLPopErrorHandler();
}
