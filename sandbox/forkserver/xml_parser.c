/*
 * Parses the XML that we write, also within an archive, of which it keeps one window in memory. It knows no comments, CDATA,
 * document types or encodings but UTF-8: what has these, or is not well formed, is not parsed. All else is read once, or twice
 * where it does not end in a window.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gdal.h"
#include "utf_8.h"
#include "xml_parser.h"

enum { WINDOW = 1 << 17, MOST_ATTRIBUTES = 32, LONGEST_PATH = 1024, LONGEST_REFERENCE = 12, LONGEST_CHARACTER = 4 };
enum { IS_NAME = 1, IS_BLANK = 2, IS_CONTROL = 4, IS_HIGH = 8 };

static const unsigned char KINDS[256] = {
    [0 ... '\t' - 1] = IS_CONTROL,
    ['\t' ... '\n'] = IS_BLANK,
    ['\v' ... '\f'] = IS_CONTROL,
    ['\r'] = IS_BLANK,
    ['\r' + 1 ... ' ' - 1] = IS_CONTROL,
    [' '] = IS_BLANK,
    ['0' ... '9'] = IS_NAME,
    ['A' ... 'Z'] = IS_NAME,
    ['a' ... 'z'] = IS_NAME,
    ['_'] = IS_NAME,
    ['-'] = IS_NAME,
    ['.'] = IS_NAME,
    [':'] = IS_NAME,
    [0x80 ... 0xff] = IS_NAME | IS_HIGH,
};

struct parser {
    void *context;
    begin_call *begin;
    end_call *end;
    text_call *text;
    handle file;
    char *window, *at, *last;     /* what is read next, and behind what can be read, where a zero is */
    char begun[LONGEST_CHARACTER]; /* the beginning of a character that the window cuts off */
    size_t begun_size;
    char path[LONGEST_PATH]; /* the names of the elements that are open, each with a zero at its end */
    size_t path_size;
    int has_root, is_no_text;
};

static int is_kind(char letter, int kind)
{
    return KINDS[(unsigned char)letter] & kind;
}

static char *past_kind(char *at, int kind)
{
    while (is_kind(*at, kind))
        at++;
    return at;
}

/* How many bytes at the end of a text begin a character that does not end there. */
static size_t begun_character(const char *start, const char *end)
{
    for (size_t back = 1; back < LONGEST_CHARACTER && back <= (size_t)(end - start); back++) {
        unsigned char byte = (unsigned char)end[-(ptrdiff_t)back];
        if ((byte & 0xc0) != 0x80)
            return byte >= 0xc0 && back < (size_t)(byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
    }
    return 0;
}

/* Read on, behind what is left of the window; 0 at the end of the file, or if that is no text. */
static int read_on(struct parser *parser)
{
    size_t left = (size_t)(parser->last - parser->at);
    memmove(parser->window, parser->at, left);
    char *start = parser->window + left, *fresh = start + parser->begun_size;
    memcpy(start, parser->begun, parser->begun_size);
    size_t got = VSIFReadL(fresh, 1, (size_t)(parser->window + WINDOW - fresh), parser->file);
    unsigned char kinds = parser->begun_size ? IS_HIGH : 0;
    for (const char *at = fresh; at < fresh + got; at++)
        kinds |= KINDS[(unsigned char)*at];
    if (got)
        parser->begun_size = begun_character(start, fresh + got);
    parser->at = parser->window;
    parser->last = got ? fresh + got - parser->begun_size : start;
    memcpy(parser->begun, parser->last, parser->begun_size);
    *parser->last = 0;
    parser->is_no_text |= kinds & IS_CONTROL || (kinds & IS_HIGH && !is_utf_8(start, (size_t)(parser->last - start)));
    return got && !parser->is_no_text;
}

/* Write the character that a reference stands for, from behind its "&", and return where it ends; NULL if it stands for none. */
static char *past_reference(char *at, char *character, size_t *size)
{
    static const struct {
        const char *name;
        char character;
    } named[] = {{"amp;", '&'}, {"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}};
    for (size_t number = 0; number < sizeof named / sizeof *named; number++)
        if (strncmp(at, named[number].name, strlen(named[number].name)) == 0) {
            *size = 1;
            *character = named[number].character;
            return at + strlen(named[number].name);
        }
    int base = at[0] == '#' && at[1] == 'x' ? 16 : 10;
    char *digits = at + (base == 16 ? 2 : 1), *end = digits;
    unsigned long code = *at == '#' && isxdigit((unsigned char)*digits) ? strtoul(digits, &end, base) : 0;
    if (*end != ';' || end - digits >= LONGEST_REFERENCE || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
        (code < ' ' && !is_kind((char)code, IS_BLANK)))
        return NULL;
    *size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t byte = *size; byte-- > 1; code >>= 6)
        character[byte] = (char)(0x80 | (code & 0x3f));
    *character = (char)(*size == 1 ? code : (0xf00u >> *size & 0xff) | code);
    return end + 1;
}

/* Replace the references in an attribute, of which the text ends with a zero; 0 if one stands for nothing. */
static int replace_references(char *at)
{
    size_t size;
    char character[LONGEST_CHARACTER], *written = at = strchrnul(at, '&');
    while (*at) {
        if (*at != '&')
            *written++ = *at++;
        else if ((at = past_reference(at + 1, character, &size))) {
            memcpy(written, character, size);
            written += size;
        } else
            return 0;
    }
    *written = 0;
    return 1;
}

/* Pass the text up to `end`, where a tag begins or, if not, the window ends; NULL if it is none. */
static char *past_text(struct parser *parser, char *end, int is_whole)
{
    size_t size;
    char character[LONGEST_CHARACTER], *at = parser->at;
    if (!parser->path_size)
        return past_kind(at, IS_BLANK) == end ? end : NULL;
    while (at < end) {
        char *reference = memchr(at, '&', (size_t)(end - at)), *last = reference ? reference : end;
        if (last > at)
            parser->text(parser->context, at, (int)(last - at));
        at = last;
        if (!reference)
            return end;
        if (!is_whole && end - reference <= LONGEST_REFERENCE)
            return reference;
        if (!(at = past_reference(reference + 1, character, &size)))
            return NULL;
        parser->text(parser->context, character, (int)size);
    }
    return at;
}

/* The end of a tag; NULL if the window ends before it. */
static char *tag_end(char *at, const char *last)
{
    for (char quote = 0; at < last; at++)
        if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at;
    return NULL;
}

/* Take the declaration at the beginning. */
static int take_declaration(const struct parser *parser, char *at, char *end)
{
    static const char encoding[] = "encoding=", name[] = "UTF-8";
    *end = 0;
    const char *told = strstr(at, encoding);
    return !parser->has_root && strncmp(at, "<?xml ", strlen("<?xml ")) == 0 && end[-1] == '?' &&
           (!told || strncasecmp(told + strlen(encoding) + 1, name, strlen(name)) == 0);
}

/* Take the end of an element, whose name begins at `at`. */
static int take_end(struct parser *parser, char *at, const char *end)
{
    char *name_end = past_kind(at, IS_NAME);
    size_t size = (size_t)(name_end - at) + 1;
    if (past_kind(name_end, IS_BLANK) != end)
        return 0;
    *name_end = 0;
    if (size > parser->path_size || memcmp(parser->path + parser->path_size - size, at, size) != 0 ||
        (size < parser->path_size && parser->path[parser->path_size - size - 1]))
        return 0;
    parser->path_size -= size;
    parser->end(parser->context, at);
    return 1;
}

/* Take the beginning of an element, whose name begins at `at`. */
static int take_begin(struct parser *parser, char *at, char *end)
{
    const char *attributes[2 * MOST_ATTRIBUTES + 1] = {NULL};
    int is_empty = end[-1] == '/', count = 0;
    char *name = at, *last = end - is_empty;
    at = past_kind(at, IS_NAME);
    size_t size = (size_t)(at - name) + 1;
    if (at == name || strchr("-.0123456789", *name) || parser->path_size + size > LONGEST_PATH ||
        (!parser->path_size && parser->has_root))
        return 0;
    *last = 0;
    while (at < last) {
        char *blank = at;
        at = past_kind(at, IS_BLANK);
        *blank = 0; /* behind the name, or behind the quote of the attribute before */
        if (at == last)
            break;
        char *value = past_kind(at, IS_NAME);
        if (at == blank || value == at || *value != '=' || (value[1] != '"' && value[1] != '\'') || count == MOST_ATTRIBUTES)
            return 0;
        char *value_end = strchr(value + 2, value[1]);
        attributes[2 * count] = at;
        attributes[2 * count++ + 1] = value + 2;
        if (!value_end)
            return 0;
        *value = *value_end = 0;
        if (strchr(value + 2, '<') || !replace_references(value + 2))
            return 0;
        at = value_end + 1;
    }
    parser->has_root = 1;
    memcpy(parser->path + parser->path_size, name, size);
    parser->path_size += size;
    parser->begin(parser->context, name, attributes);
    if (!is_empty)
        return 1;
    parser->path_size -= size;
    parser->end(parser->context, name);
    return 1;
}

static int take_tag(struct parser *parser, char *end)
{
    char *at = parser->at + 1;
    parser->at = end + 1;
    return *at == '?'   ? take_declaration(parser, at - 1, end)
           : *at == '/' ? take_end(parser, at + 1, end)
                        : take_begin(parser, at, end);
}

/* Take all of a file; whether it is one element, with what is in it. */
static int take_all(struct parser *parser)
{
    while (read_on(parser))
        for (;;) {
            char *tag = memchr(parser->at, '<', (size_t)(parser->last - parser->at));
            if (!(parser->at = past_text(parser, tag ? tag : parser->last, tag != NULL)))
                return 0;
            char *end = tag ? tag_end(tag, parser->last) : NULL;
            if (!end)
                break;
            if (!take_tag(parser, end))
                return 0;
        }
    return parser->has_root && !parser->path_size && parser->at == parser->last && !parser->begun_size && !parser->is_no_text;
}

int parse_xml(const char *name, void *context, begin_call *begin, end_call *end, text_call *text)
{
    struct parser *parser = calloc(1, sizeof *parser + WINDOW + 1);
    int is_parsed = 0;
    if (!parser)
        return 0;
    *parser = (struct parser){.context = context, .begin = begin, .end = end, .text = text, .file = VSIFOpenL(name, "rb")};
    parser->window = parser->at = parser->last = (char *)(parser + 1);
    if (parser->file) {
        is_parsed = take_all(parser);
        VSIFCloseL(parser->file);
    }
    free(parser);
    return is_parsed;
}

const char *value_in(const char **attributes, const char *attribute)
{
    for (; *attributes; attributes += 2)
        if (strcmp(*attributes, attribute) == 0)
            return attributes[1];
    return NULL;
}
