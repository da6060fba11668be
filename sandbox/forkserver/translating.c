/* Converts what a session has opened or holds. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "gdal_messages.h"
#include "loading.h"
#include "progress.h"
#include "spatialite.h"
#include "translating.h"
#include "waiting.h"

/* So many features are written in memory where a result can begin there. */
enum { MOST_IN_MEMORY = 1000 };

/* The arguments for the layer that has stayed in its file, written under the name by which commands know it. None selects
 * it: it is the only one, and its name there, which comes from the upload, could be an option. There is room for one more
 * before them. */
static char **with_stayed_layer(char **at)
{
    int count = 0, is_named = 0;
    while (at[count])
        is_named |= strcmp(at[count++], "-nln") == 0;
    char **made = calloc((size_t)count + 4, sizeof *made), **to = made + 1;
    if (!made)
        _exit(1);
    if (!is_named) {
        *to++ = "-nln";
        *to++ = stayed_table;
    }
    for (int number = 0; number < count; number++)
        if (strcmp(at[number], stayed_table) != 0 || (number && strcmp(at[number - 1], "-nln") == 0))
            *to++ = at[number];
    return made + 1;
}

/* Do what ogr2ogr's main() does with its arguments. The target's name comes first; the source is what is open or held. */
void translate(char **at)
{
    const char *target = *at++;
    handle from = latest, existing = NULL, written = NULL, taken = NULL;
    int is_update = 0, misused = 0;
    for (char **argument = at; *argument; argument++)
        is_update |= strcmp(*argument, "-update") == 0 || strcmp(*argument, "-append") == 0;
    int is_seated = from != memory || store_waiting();
    if (stayed && from == memory) {
        from = stayed_in;
        at = with_stayed_layer(at);
    }
    int64_t features = known_features(from);
    if (features > 0)
        *--at = "-progress"; /* in place of the target's name; with unknown counts, it would only cause a warning */
    if (!is_update && features > 0 && features <= MOST_IN_MEMORY)
        existing = taken = take_spatialite(at);
    handle wishes = from ? GDALVectorTranslateOptionsNew(at, NULL) : NULL;
    if (wishes)
        GDALVectorTranslateOptionsSetProgress(wishes, report_share, NULL);
    if (wishes && is_update)
        existing = GDALOpenEx(target, OF_VECTOR | OF_UPDATE | OF_VERBOSE, NULL, NULL, NULL);
    if (wishes && (!is_update || existing))
        written = GDALVectorTranslate(existing ? NULL : target, existing, 1, &from, wishes, &misused);
    if (written || existing)
        GDALClose(written ? written : existing);
    end_answer("{", is_seated && written && !misused && (!taken || write_spatialite(target)));
}
