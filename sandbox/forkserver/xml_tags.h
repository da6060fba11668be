/* Tags and attributes of XML; see xml_tags.c. Texts need not end with a zero. */
#pragma once
#include <stddef.h>

/* What is between the name of a tag and its end, or the quotes of an attribute; its end is NULL if there is none. */
struct tag {
    const char *start, *end;
};

/* Where a text is found next; NULL if nowhere. */
const char *find(const char *start, const char *end, const char *text);

int begins(const char *at, const char *end, const char *text);

const char *past_blanks(const char *at, const char *end);

/* The tag that begins with `name` at `at`; its end is NULL if it has another name, or does not end before the next one. */
struct tag tag_at(const char *at, const char *end, const char *name);

/* The value of an attribute of a tag, without its quotes. */
struct tag attribute(struct tag tag, const char *name);

/* The number that an attribute is; `otherwise` if there is none. */
int number_of(struct tag tag, const char *name, int otherwise);
