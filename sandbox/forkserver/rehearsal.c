/*
 * What libraries prepare at their first use, done once in the server: a child has it from there. PROJ keeps the statements
 * that it has prepared, and the definitions that it has read, of which one takes longer than a small file to be converted.
 * No file is touched but PROJ's database, and nothing here is a client's.
 */
#include <stdlib.h>

#include "gdal.h"
#include "rehearsal.h"

enum { DEGREES = 4326 };

/* The transformation that most conversions ask for, from degrees to degrees. */
static void rehearse_transformation(handle degrees)
{
    handle made = OCTNewCoordinateTransformation(degrees, degrees);
    if (made)
        OCTDestroyCoordinateTransformation(made);
}

/* The search for the code of a definition that does not say it, as no .prj does. */
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

/* A new GeoPackage: its driver reads the definitions of all systems that tiles could be in. */
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
