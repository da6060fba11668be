/*
 * The last steps of results that drivers do not write as they are delivered: GML lacks a declaration, features of GeoJSON may be
 * written as lines, lines of WKT are the only column of a table, and rows of CSV may have more cells than its header. Programs of
 * ours do the same without a session (`postprocessing.py`, `readback.py`).
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "gdal.h"
#include "gdal_messages.h"
#include "mapped_file.h"
#include "postprocessing.h"
#include "xml_tags.h"

enum { HEAD_BYTES = 4096 };

/* What makes readers such as GDAL 3.10 take coordinates of two numbers, which declare no dimension, for three. */
static const char ENVELOPE[] = "<gml:Envelope", OF_THREE[] = " srsDimension=\"3\"";
/* The line for a feature without geometry, so that lines and features stay aligned. */
static const char NO_GEOMETRY_LINE[] = "GEOMETRYCOLLECTION EMPTY", EMPTY_END[] = " EMPTY";
/* The row of a single column without a value: most programs skip an empty line. */
static const char NO_VALUE[] = "\"\"\n";

/* Say why a file was not written, such as for lack of space. */
static int failed(void)
{
    keep_message(FAILURE, errno, strerror(errno));
    return 0;
}

/* Close a file that was written; whether all of it was. */
static int finish(FILE *written)
{
    int ok = !ferror(written);
    return (fclose(written) == 0 && ok) || failed();
}

/* The end of the name of the root element: of the first tag that is no declaration. */
static const char *root_name_end(const char *at, const char *end)
{
    while ((at = memchr(at, '<', (size_t)(end - at))) && at + 1 < end)
        if (*++at == '_' || isalpha((unsigned char)*at)) {
            while (at < end && *at != '>' && !isspace((unsigned char)*at))
                at++;
            return at;
        }
    return end;
}

int declare_attributes(const char *xml, const char *attributes, const char *copy)
{
    struct mapped file = map_file(xml);
    FILE *written = file.size ? fopen(copy, "we") : NULL;
    if (!written) {
        unmap_file(&file);
        return failed();
    }
    const char *end = file.start + file.size, *head_end = file.size < HEAD_BYTES ? end : file.start + HEAD_BYTES;
    const char *root = root_name_end(file.start, head_end), *envelope = find(root, head_end, ENVELOPE);
    const char *envelope_end = envelope ? memchr(envelope, '>', (size_t)(head_end - envelope)) : NULL;
    const char *of_three = envelope_end ? find(envelope, envelope_end, OF_THREE) : NULL;
    fwrite(file.start, 1, (size_t)(root - file.start), written);
    if (root < head_end && !find(file.start, head_end, attributes))
        fprintf(written, " %s", attributes);
    if (of_three) {
        fwrite(root, 1, (size_t)(of_three - root), written);
        root = of_three + strlen(OF_THREE);
    }
    for (const char *at = root; at < end; pass(&file, at)) {
        size_t size = (size_t)(end - at) < 1 << 20 ? (size_t)(end - at) : 1 << 20;
        fwrite(at, 1, size, written);
        at += size;
    }
    unmap_file(&file);
    return finish(written);
}

static int is_blank(char letter)
{
    return isspace((unsigned char)letter);
}

static int is_blank_or_quote(char letter)
{
    return letter == '"' || is_blank(letter);
}

/* The next line of a file, without its end; its end is NULL behind the last one. */
static struct tag next_line(struct mapped *file, const char *at)
{
    const char *end = file->start + file->size, *line_end;
    pass(file, at);
    if (at >= end)
        return (struct tag){at, NULL};
    line_end = memchr(at, '\n', (size_t)(end - at));
    return (struct tag){at, line_end ? line_end : end};
}

/* A line without the blanks around it. */
static struct tag stripped(struct tag line, int (*is_around)(char))
{
    while (line.start < line.end && is_around(*line.start))
        line.start++;
    while (line.end > line.start && is_around(line.end[-1]))
        line.end--;
    return line;
}

int gather_lines(const char *lines, const char *title, const char *document)
{
    struct mapped file = map_file(lines);
    FILE *written = fopen(document, "we");
    const char *separator = "";
    if (!written) {
        unmap_file(&file);
        return failed();
    }
    fprintf(written, "{\n\"type\": \"FeatureCollection\",\n\"name\": %s,\n\"features\": [\n", title);
    for (struct tag line = next_line(&file, file.start); line.end; line = next_line(&file, line.end + 1)) {
        struct tag feature = stripped(line, is_blank);
        fputs(separator, written);
        fwrite(feature.start, 1, (size_t)(feature.end - feature.start), written);
        separator = ",\n";
    }
    fputs("\n]\n}\n", written);
    unmap_file(&file);
    return finish(written);
}

int write_lines_of_wkt(const char *separated, const char *lines)
{
    struct mapped file = map_file(separated);
    FILE *written = file.size ? fopen(lines, "we") : NULL;
    if (!written) {
        unmap_file(&file);
        return failed();
    }
    struct tag line = next_line(&file, file.start); /* the header */
    while (line.end && (line = next_line(&file, line.end + 1)).end) {
        struct tag geometry = stripped(line, is_blank_or_quote);
        if (geometry.start == geometry.end)
            fputs(NO_GEOMETRY_LINE, written);
        fwrite(geometry.start, 1, (size_t)(geometry.end - geometry.start), written);
        fputc('\n', written);
    }
    unmap_file(&file);
    return finish(written);
}

int even_rows(const char *rows, const char *csv, const char *columns)
{
    struct mapped file = map_file(rows);
    FILE *written = file.size ? fopen(csv, "we") : NULL;
    int is_lone = strcmp(columns, "1") == 0, is_open = 0;
    if (!written) {
        unmap_file(&file);
        return failed();
    }
    for (struct tag line = next_line(&file, file.start); line.end; line = next_line(&file, line.end + 1)) {
        size_t size = (size_t)(line.end - line.start);
        int is_longer = !is_open && size == 2 && memcmp(line.start, ",,", 2) == 0;
        for (const char *at = line.start; (at = memchr(at, '"', (size_t)(line.end - at))); at++)
            is_open = !is_open;
        int is_separated = is_lone && !is_open && size && line.end[-1] == ',';
        fwrite(line.start, 1, size - (is_longer || is_separated), written);
        fputs(is_separated && size == 1 ? NO_VALUE : "\n", written);
    }
    unmap_file(&file);
    return finish(written);
}

/* Whether a geometry in WKT ends where its line does: all its brackets are closed, and it has some unless it is empty. */
static int is_whole_geometry(struct tag line)
{
    int64_t open = 0, most = 0;
    for (const char *at = line.start; at < line.end; at++) {
        open += (*at == '(') - (*at == ')');
        most |= open;
    }
    size_t size = (size_t)(line.end - line.start), end = strlen(EMPTY_END);
    return open == 0 && (most ? line.end[-1] == ')' : size > end && memcmp(line.end - end, EMPTY_END, end) == 0);
}

void count_lines_of_wkt(const char *name)
{
    struct mapped file = map_file(name);
    long long features = 0, geometries = 0;
    int has_z = 0, has_m = 0, is_whole = file.size > 0;
    for (struct tag line = next_line(&file, file.start); line.end && is_whole; line = next_line(&file, line.end + 1)) {
        size_t size = (size_t)(line.end - line.start);
        const char *bracket = memchr(line.start, '(', size);
        const char *dimensions = bracket ? memchr(line.start, ' ', (size_t)(bracket - line.start)) : NULL;
        is_whole = is_whole_geometry(line);
        features++;
        geometries += size != strlen(NO_GEOMETRY_LINE) || memcmp(line.start, NO_GEOMETRY_LINE, size) != 0;
        has_z |= dimensions && find(dimensions, bracket, "Z");
        has_m |= dimensions && find(dimensions, bracket, "M");
    }
    put("{\"ok\":%s,\"layer\":{\"features\":%lld,\"geometries\":%lld,\"has_z\":%s,\"has_m\":%s}", is_whole ? "true" : "false",
        features, geometries, has_z ? "true" : "false", has_m ? "true" : "false");
    unmap_file(&file);
}
