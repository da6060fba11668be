/* Parses XML as GDAL does, by Expat, on which it depends. The functions are weak, as all that is used of GDAL. */
#include <stdio.h>
#include <string.h>

#include "gdal.h"
#include "xml_parser.h"

typedef void *parser;
GDAL parser XML_ParserCreate(const char *);
GDAL void XML_SetUserData(parser, void *);
GDAL void XML_SetElementHandler(parser, begin_call *, end_call *);
GDAL void XML_SetCharacterDataHandler(parser, text_call *);
GDAL void *XML_GetBuffer(parser, int);
GDAL int XML_ParseBuffer(parser, int, int);
GDAL void XML_ParserFree(parser);

enum { PIECE = 1 << 16 };

int parse_xml(const char *name, void *context, begin_call *begin, end_call *end, text_call *text)
{
    FILE *file = XML_ParserCreate ? fopen(name, "re") : NULL;
    parser parses = file ? XML_ParserCreate(NULL) : NULL;
    int is_parsed = parses != NULL, is_over = 0;
    if (is_parsed) {
        XML_SetUserData(parses, context);
        XML_SetElementHandler(parses, begin, end);
        XML_SetCharacterDataHandler(parses, text);
    }
    while (is_parsed && !is_over) {
        void *piece = XML_GetBuffer(parses, PIECE);
        size_t size = piece ? fread(piece, 1, PIECE, file) : 0;
        is_over = size < PIECE;
        is_parsed = piece && !ferror(file) && XML_ParseBuffer(parses, (int)size, is_over);
    }
    if (parses)
        XML_ParserFree(parses);
    if (file)
        fclose(file);
    return is_parsed;
}

const char *value_in(const char **attributes, const char *attribute)
{
    for (; *attributes; attributes += 2)
        if (strcmp(*attributes, attribute) == 0)
            return attributes[1];
    return NULL;
}
