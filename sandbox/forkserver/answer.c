/*
 * The answers of a session: a length of four bytes, then JSON. An answer grows in memory up to a limit. A run that would
 * exceed it, or whose answers are no longer read, ends.
 */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "utf_8.h"
#include "writing.h"

enum { MOST_BYTES = 16 << 20, LENGTH = sizeof(uint32_t) };

const char *refused;
static char *answer; /* with room for its length in front, so that one write wakes the service for all of it */
static size_t answer_size, answer_room;

void put_bytes(const char *bytes, size_t size)
{
    if (answer_size + size > MOST_BYTES)
        _exit(1);
    if (answer_size + size > answer_room) {
        answer_room = 2 * (answer_size + size);
        if (!(answer = realloc(answer, LENGTH + answer_room)))
            _exit(1);
    }
    memcpy(answer + LENGTH + answer_size, bytes, size);
    answer_size += size;
}

void put(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof text) /* a part of it would be no answer */
        _exit(1);
    put_bytes(text, (size_t)size);
}

void put_text(const char *text)
{
    size_t size = strlen(text);
    if (!is_utf_8(text, size)) {
        refused = "encoding";
        size = 0;
    }
    put_bytes("\"", 1);
    for (const char *at = text; at < text + size; at++) {
        if (*at == '"' || *at == '\\')
            put("\\%c", *at);
        else if ((unsigned char)*at < ' ')
            put("\\u%04x", *at);
        else
            put_bytes(at, 1);
    }
    put_bytes("\"", 1);
}

void put_number(double number)
{
    if (isfinite(number))
        put("%.17g", number);
    else
        put("null");
}

void take_back_answer(void)
{
    answer_size = 0;
}

void send_answer(int answers)
{
    uint32_t size = (uint32_t)answer_size;
    memcpy(answer, &size, LENGTH);
    if (!write_all(answers, answer, LENGTH + answer_size))
        _exit(1);
    answer_size = 0;
}
