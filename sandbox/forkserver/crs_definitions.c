/*
 * Takes the place of PROJ's function that writes a system as text. For ESRI's names, as a .prj has them, PROJ searches its
 * database, which can take three times as long as a small conversion. What the server has kept, a child takes over for a system of
 * the same code that also is the same in every part.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "crs_definitions.h"

enum { ESRI = 5, STRICTLY = 0, MOST_KEPT = 32, MOST_OPTIONS = 4 };

static struct definition {
    handle system;
    const char *text;
    const char *options[MOST_OPTIONS + 1];
} kept[MOST_KEPT];
static size_t count;
static int is_keeping;

static int are_same(const char *one, const char *other)
{
    return one && other && strcmp(one, other) == 0;
}

static int have_same_options(options one, options other)
{
    while (one && other && are_same(*one, *other))
        one++, other++;
    return !(one && *one) && !(other && *other);
}

static int is_of(const struct definition *definition, handle system, options how)
{
    return are_same(proj_get_id_code(system, 0), proj_get_id_code(definition->system, 0)) &&
           are_same(proj_get_id_auth_name(system, 0), proj_get_id_auth_name(definition->system, 0)) &&
           have_same_options(how, definition->options) && proj_is_equivalent_to(system, definition->system, STRICTLY);
}

static void keep(handle context, handle system, const char *text, options how)
{
    struct definition *definition = kept + count;
    *definition = (struct definition){0};
    for (size_t number = 0; how && how[number]; number++) {
        if (number == MOST_OPTIONS)
            return;
        definition->options[number] = strdup(how[number]);
    }
    definition->system = proj_clone(context, system);
    definition->text = strdup(text);
    count += definition->system && definition->text;
}

__attribute__((visibility("default"))) const char *proj_as_wkt(handle context, handle system, int kind, options how)
{
    static const char *(*real)(handle, handle, int, const char *const *);
    for (size_t number = 0; kind == ESRI && number < count; number++)
        if (is_of(kept + number, system, how))
            return kept[number].text;
    if (!real)
        real = (const char *(*)(handle, handle, int, const char *const *))dlsym(RTLD_NEXT, "proj_as_wkt");
    const char *text = real ? real(context, system, kind, how) : NULL;
    if (is_keeping && kind == ESRI && text && count < MOST_KEPT)
        keep(context, system, text, how);
    return text;
}

void keep_definition(handle system)
{
    const char *const format[] = {"FORMAT=WKT1_ESRI", NULL};
    char *text = NULL;
    is_keeping = 1;
    OSRExportToWktEx(system, &text, format);
    is_keeping = 0;
    free(text);
}
