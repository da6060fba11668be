/*
 * Does once, in the server, what libraries prepare at their first use, so that children inherit it. PROJ keeps prepared
 * statements and definitions; reading one definition takes longer than converting a small file. The only file that is read
 * is PROJ's database, and nothing comes from a client.
 */
#include <stdlib.h>

#include "gdal.h"
#include "rehearsal.h"

enum { DEGREES = 4326 };

/* The transformation that most conversions need, from degrees to degrees. */
static void rehearse_transformation(handle degrees)
{
    handle made = OCTNewCoordinateTransformation(degrees, degrees);
    if (made)
        OCTDestroyCoordinateTransformation(made);
}

/* The search for the code of a definition without one, such as that of any .prj. */
static void rehearse_search(handle degrees)
{
    const char *const esri[] = {"FORMAT=WKT1_ESRI", NULL};
    char *definition = NULL;
    int count = 0, *confidences = NULL;
    handle read = OSRNewSpatialReference(NULL);
    if (OSRExportToWktEx(degrees, &definition, esri) == 0 && OSRImportFromESRI(read, (char *[]){definition, NULL}) == 0) {
        OSRFreeSRSArray(OSRFindMatches(read, NULL, &count, &confidences));
        free(confidences);
    }
    OSRDestroySpatialReference(read);
    free(definition);
}

/* A new GeoPackage, whose driver reads the definitions of all systems for tiles. */
static void rehearse_geopackage(handle degrees)
{
    const char *path = "/vsimem/rehearsal.gpkg";
    handle driver = GDALGetDriverByName("GPKG"), made = driver ? GDALCreate(driver, path, 0, 0, 0, 0, NULL) : NULL;
    if (!made)
        return;
    GDALDatasetCreateLayer(made, "rehearsal", degrees, POINT, NULL);
    GDALClose(made);
    GDALDeleteDataset(driver, path);
}

/* Do what most runs will do; skip silently what is impossible here. */
void rehearse(void)
{
    if (!OSRNewSpatialReference || !OSRFindMatches)
        return;
    handle degrees = OSRNewSpatialReference(NULL);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (OSRImportFromEPSG(degrees, DEGREES) == 0) {
        OSRSetAxisMappingStrategy(degrees, TRADITIONAL_ORDER);
        rehearse_search(degrees);
        rehearse_transformation(degrees);
        rehearse_geopackage(degrees);
    }
    CPLPopErrorHandler();
    OSRDestroySpatialReference(degrees);
}
