/* Finds tags and attributes in XML without parsing all of it. No look at a tag goes beyond the next one. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "xml_tags.h"

enum { FEW_DIGITS = 9 };

static int is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static int is_word(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

const char *find(const char *start, const char *end, const char *text)
{
    return start < end ? memmem(start, (size_t)(end - start), text, strlen(text)) : NULL;
}

const char *past_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

struct tag tag_from(const char *at, const char *end)
{
    struct tag tag = {.start = at};
    if (at == end || is_word(*at))
        return tag;
    for (; at < end && *at != '<' && *at != '>'; at++)
        continue;
    tag.end = at < end && *at == '>' ? at : NULL;
    return tag;
}

struct tag attribute(struct tag tag, const char *name)
{
    struct tag value = {0}, none = {0};
    size_t size = strlen(name);
    for (const char *at = past_blanks(tag.start, tag.end); at < tag.end; at = past_blanks(value.end + 1, tag.end)) {
        const char *own_name = at;
        while (at < tag.end && *at != '=' && !is_blank(*at))
            at++;
        int is_it = (size_t)(at - own_name) == size && memcmp(own_name, name, size) == 0;
        at = past_blanks(at, tag.end);
        if (at == tag.end || *at != '=')
            break;
        at = past_blanks(at + 1, tag.end);
        if (at == tag.end || (*at != '"' && *at != '\''))
            break;
        value.start = at + 1;
        value.end = memchr(value.start, *at, (size_t)(tag.end - value.start));
        if (!value.end || is_it)
            return value;
    }
    return none;
}

int number_of(struct tag tag, const char *name, int otherwise)
{
    struct tag value = attribute(tag, name);
    int64_t number = 0;
    if (!value.end || value.start == value.end || value.end - value.start > FEW_DIGITS)
        return otherwise;
    for (const char *at = value.start; at < value.end; at++) {
        if (!isdigit((unsigned char)*at))
            return otherwise;
        number = 10 * number + *at - '0';
    }
    return (int)number;
}

