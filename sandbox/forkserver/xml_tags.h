/* Tags and attributes of XML; see xml_tags.c. Texts need not end with a zero. */
#pragma once
#include <stddef.h>
#include <string.h>

/* What is between the name of a tag and its end, or the quotes of an attribute; its end is NULL if there is none. */
struct tag {
    const char *start, *end;
};

/* Where a text is found next; NULL if nowhere. */
const char *find(const char *start, const char *end, const char *text);

/* Whether a text begins with another one. Most do not, and what they are compared with is constant, so that this is no call. */
static inline int begins(const char *at, const char *end, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(end - at) >= size && memcmp(at, text, size) == 0;
}

const char *past_blanks(const char *at, const char *end);

/* The tag of which the name ends at `at`; its end is NULL if the name goes on, or the tag does not end before the next one. */
struct tag tag_from(const char *at, const char *end);

/* The tag that begins with `name` at `at`; its end is NULL if it has another name, or does not end before the next one. */
static inline struct tag tag_at(const char *at, const char *end, const char *name)
{
    return begins(at, end, name) ? tag_from(at + strlen(name), end) : (struct tag){0};
}

/* The value of an attribute of a tag, without its quotes. */
struct tag attribute(struct tag tag, const char *name);

/* The number that an attribute is; `otherwise` if there is none. */
int number_of(struct tag tag, const char *name, int otherwise);
