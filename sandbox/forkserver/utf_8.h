/* Texts in UTF-8; see utf_8.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Take the next character, of which at least one byte is left; -1 if the bytes are not UTF-8. */
int32_t next_character(const unsigned char **at, const unsigned char *end);

/* Whether GDAL takes the bytes for UTF-8. */
int is_utf_8(const char *start, size_t size);
