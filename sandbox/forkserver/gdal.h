/*
 * What is used of GDAL and PROJ, declared as it has been since 3.0, for its headers need not be installed. The functions are weak,
 * so that the library can be loaded before any program.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define GDAL extern __attribute__((weak))
typedef void *handle;
typedef const char *const *options;

/* The value of a field that is neither unset nor null, by the type of the field. */
union value {
    int integer;
    int64_t integer64;
    double real;
    char *string;
    struct moment {
        int16_t year;
        uint8_t month, day, hour, minute, zone, reserved;
        float second;
    } moment; /* `zone`: 0 none, 1 an unknown one, otherwise quarters of an hour east of UTC, which is 100 */
    struct {
        int count;
        void *bytes;
    } binary; /* no other is larger */
};

void GDALAllRegister(void); /* that of drivers.c */
GDAL int GDALGetDriverCount(void);
GDAL handle GDALGetDriver(int);
GDAL handle GDALGetDriverByName(const char *);
GDAL void GDALDeregisterDriver(handle);
GDAL handle GDALCreate(handle, const char *, int, int, int, int, options);
GDAL handle GDALOpenEx(const char *, unsigned, options, options, options);
GDAL void GDALClose(handle);
GDAL handle GDALGetDatasetDriver(handle);
GDAL const char *GDALGetDescription(handle);
GDAL int GDALDatasetGetLayerCount(handle);
GDAL handle GDALDatasetGetLayer(handle, int);
GDAL handle GDALDatasetGetLayerByName(handle, const char *);
GDAL handle GDALDatasetCreateLayer(handle, const char *, handle, int, options);
GDAL int GDALDatasetDeleteLayer(handle, int);
GDAL handle GDALDatasetExecuteSQL(handle, const char *, handle, const char *);
GDAL void GDALDatasetReleaseResultSet(handle, handle);
GDAL char **GDALGetMetadata(handle, const char *);
GDAL const char *GDALGetMetadataItem(handle, const char *, const char *);
GDAL int GDALSetMetadata(handle, char **, const char *);
GDAL handle GDALVectorTranslateOptionsNew(char **, void *);
GDAL void GDALVectorTranslateOptionsSetProgress(handle, int (*)(double, const char *, void *), void *);
GDAL handle GDALVectorTranslate(const char *, handle, int, handle *, handle, int *);
GDAL int GDALDeleteDataset(handle, const char *);
GDAL const char *CPLGetConfigOption(const char *, const char *);
GDAL void CPLSetConfigOption(const char *, const char *);
GDAL void CPLQuietErrorHandler(int, int, const char *);
GDAL void CPLPushErrorHandler(void (*)(int, int, const char *));
GDAL void CPLPopErrorHandler(void);
GDAL void CPLSetErrorHandler(void (*)(int, int, const char *));
GDAL void VSIFree(void *);
GDAL handle VSIFOpenL(const char *, const char *);
GDAL size_t VSIFReadL(void *, size_t, size_t, handle);
GDAL int VSIFCloseL(handle);
GDAL const char *VSIGetMemFileBuffer(const char *, uint64_t *, int);
GDAL char **VSIReadDir(const char *);
GDAL void CSLDestroy(char **);
GDAL int CPLIsUTF8(const char *, int);
GDAL double CPLStrtod(const char *, char **);
GDAL const char *OGR_L_GetName(handle);
GDAL handle OGR_L_GetLayerDefn(handle);
GDAL handle OGR_L_GetSpatialRef(handle);
GDAL const char *OGR_L_GetGeometryColumn(handle);
GDAL int OGR_L_GetExtent(handle, double *, int);
GDAL handle OGR_L_GetNextFeature(handle);
GDAL void OGR_L_ResetReading(handle);
GDAL int OGR_L_CreateField(handle, handle, int);
GDAL int OGR_L_AlterFieldDefn(handle, int, handle, int);
GDAL int OGR_L_CreateFeature(handle, handle);
GDAL int64_t OGR_L_GetFeatureCount(handle, int);
GDAL int OGR_L_TestCapability(handle, const char *);
GDAL int OGR_L_SetIgnoredFields(handle, const char **);
GDAL int OGR_FD_GetFieldCount(handle);
GDAL handle OGR_FD_GetFieldDefn(handle, int);
GDAL int OGR_FD_GetGeomFieldCount(handle);
GDAL int OGR_FD_GetGeomType(handle);
GDAL handle OGR_Fld_Create(const char *, int);
GDAL void OGR_Fld_Destroy(handle);
GDAL const char *OGR_Fld_GetNameRef(handle);
GDAL int OGR_Fld_GetType(handle);
GDAL int OGR_Fld_GetSubType(handle);
GDAL void OGR_Fld_SetSubType(handle, int);
GDAL int OGR_Fld_GetWidth(handle);
GDAL void OGR_Fld_SetWidth(handle, int);
GDAL int OGR_Fld_GetPrecision(handle);
GDAL int OGR_Fld_IsNullable(handle);
GDAL int OGR_Fld_IsUnique(handle);
GDAL const char *OGR_Fld_GetDefault(handle);
GDAL const char *OGR_Fld_GetDomainName(handle);
GDAL const char *OGR_Fld_GetAlternativeNameRef(handle);
GDAL const char *OGR_Fld_GetComment(handle);
GDAL handle OGR_F_Create(handle);
GDAL void OGR_F_Destroy(handle);
GDAL handle OGR_F_GetGeometryRef(handle);
GDAL handle OGR_F_StealGeometry(handle);
GDAL int OGR_F_SetGeometryDirectly(handle, handle);
GDAL int OGR_F_IsFieldSet(handle, int);
GDAL const char *OGR_F_GetStyleString(handle);
GDAL int OGR_F_IsFieldSetAndNotNull(handle, int);
GDAL void OGR_F_SetFieldNull(handle, int);
GDAL void OGR_F_UnsetField(handle, int);
GDAL double OGR_F_GetFieldAsDouble(handle, int);
GDAL const char *OGR_F_GetFieldAsString(handle, int);
GDAL void OGR_F_SetFieldInteger(handle, int, int);
GDAL void OGR_F_SetFieldInteger64(handle, int, long long);
GDAL void OGR_F_SetFieldString(handle, int, const char *);
GDAL void OGR_F_SetFieldDouble(handle, int, double);
GDAL void OGR_F_SetFID(handle, int64_t);
GDAL union value *OGR_F_GetRawFieldRef(handle, int);
GDAL int OGR_F_SetFromWithMap(handle, handle, int, const int *);
GDAL int OGR_G_GetGeometryType(handle);
GDAL int OGR_G_GetDimension(handle);
GDAL int OGR_G_IsEmpty(handle);
GDAL int OGR_G_WkbSize(handle);
GDAL int OGR_G_ExportToIsoWkt(handle, char **);
GDAL double OGR_G_Length(handle);
GDAL double OGR_G_Distance(handle, handle);
GDAL void OGR_G_GetEnvelope(handle, double *);
GDAL void OGR_G_GetEnvelope3D(handle, double *);
GDAL int OGR_G_GetGeometryCount(handle);
GDAL handle OGR_G_GetGeometryRef(handle, int);
GDAL int OGR_G_RemoveGeometry(handle, int, int);
GDAL int OGR_G_GetPointCount(handle);
GDAL int OGR_G_GetPoints(handle, void *, int, void *, int, void *, int);
GDAL double OGR_G_GetX(handle, int);
GDAL double OGR_G_GetZ(handle, int);
GDAL double OGR_G_GetY(handle, int);
GDAL double OGR_G_GetM(handle, int);
GDAL void OGR_G_SetPointM(handle, int, double, double, double);
GDAL void OGR_G_SetPointZM(handle, int, double, double, double, double);
GDAL void OGR_G_SetMeasured(handle, int);
GDAL void OGR_G_DestroyGeometry(handle);
GDAL handle OGR_G_CreateGeometry(int);
GDAL void OGR_G_SetPoint(handle, int, double, double, double);
GDAL void OGR_G_SetPoint_2D(handle, int, double, double);
GDAL int OGR_G_Transform(handle, handle);
GDAL handle OGR_GeomTransformer_Create(handle, options);
GDAL handle OGR_GeomTransformer_Transform(handle, handle);
GDAL void OGR_GeomTransformer_Destroy(handle);
GDAL int OGR_GT_Flatten(int);
GDAL int OGR_GT_IsSubClassOf(int, int);
GDAL int OGR_GT_HasZ(int);
GDAL int OGR_GT_HasM(int);
GDAL handle OSRNewSpatialReference(const char *);
GDAL int OSRImportFromEPSG(handle, int);
GDAL handle OSRClone(handle);
GDAL int OSRAutoIdentifyEPSG(handle);
GDAL int OSRIsGeographic(handle);
GDAL double OSRGetLinearUnits(handle, char **);
GDAL double OSRGetSemiMajor(handle, int *);
GDAL double OSRGetInvFlattening(handle, int *);
GDAL double OSRGetPrimeMeridian(handle, char **);
GDAL int OSRGetTOWGS84(handle, double *, int);
GDAL const char *OSRGetAttrValue(handle, const char *, int);
GDAL const char *OSRGetAuthorityName(handle, const char *);
GDAL const char *OSRGetAuthorityCode(handle, const char *);
GDAL int OSRImportFromMICoordSys(handle, const char *);
GDAL int OSRImportFromESRI(handle, char **);
GDAL int OSRExportToWktEx(handle, char **, options);
GDAL handle *OSRFindMatches(handle, char **, int *, int **);
GDAL void OSRFreeSRSArray(handle *);
GDAL void OSRDestroySpatialReference(handle);
GDAL void OSRSetAxisMappingStrategy(handle, int);
GDAL handle OCTNewCoordinateTransformation(handle, handle);
GDAL handle OCTClone(handle);
GDAL handle OCTGetInverse(handle);
GDAL void OCTDestroyCoordinateTransformation(handle);
GDAL int OCTTransformEx(handle, int, double *, double *, double *, int *);
GDAL handle proj_context_create(void);
GDAL const char *proj_context_get_database_path(handle);
GDAL void proj_context_destroy(handle);
GDAL handle proj_clone(handle, handle);
GDAL const char *proj_get_id_auth_name(handle, int);
GDAL const char *proj_get_id_code(handle, int);
GDAL int proj_is_equivalent_to(handle, handle, int);

enum { OF_UPDATE = 1, OF_VECTOR = 4, OF_VERBOSE = 0x40 };
enum { INTEGER = 0, REAL = 2, STRING = 4, BINARY = 8, DATE = 9, TIME = 10, DATETIME = 11, INTEGER64 = 12 };
enum { INTEGER_LIST = 1, REAL_LIST = 3, STRING_LIST = 5, INTEGER64_LIST = 13 };
enum { NO_FID = -1, PLAIN = 0, BOOLEAN = 1, FLOAT32 = 3 };
enum { POINT = 1, AREA = 3, MULTI_AREA = 6, COLLECTION = 7, TRIANGLE = 17, POINT_IN_SPACE = (int)0x80000001, NO_GEOMETRY = 100, FAILURE = 3, DEBUG = 1, TRADITIONAL_ORDER = 0, ALTER_NAME = 1, ALTER_WIDTH = 4 };
