/* What GDAL says while a command is carried out. */
#include <stdio.h>
#include <unistd.h>

#include "answer.h"
#include "gdal.h"
#include "gdal_messages.h"

enum { MOST_MESSAGES = 1 << 16 };

static char messages[MOST_MESSAGES];
static size_t messages_size;
static int failures;

void keep_message(int kind, int number, const char *text)
{
    if (kind == DEBUG || kind == 0)
        return;
    failures += kind >= FAILURE;
    size_t room = sizeof messages - messages_size;
    int size = snprintf(messages + messages_size, room, kind >= FAILURE ? "ERROR %d: %s\n" : "Warning %d: %s\n", number, text);
    if (size > 0)
        messages_size += (size_t)size < room ? (size_t)size : room - 1;
    dprintf(STDERR_FILENO, kind >= FAILURE ? "ERROR %d: %s\n" : "Warning %d: %s\n", number, text);
}

void forget_messages(void)
{
    messages_size = 0;
    messages[0] = 0;
    failures = 0;
}

int has_failed(void)
{
    return failures > 0;
}

void end_answer(const char *before, int ok)
{
    put("%s\"ok\":%s", before, ok ? "true" : "false");
    tell_messages();
}

void tell_messages(void)
{
    put(",\"messages\":");
    for (size_t at = 0; at < messages_size; at++) /* a driver may quote what is no text at all */
        if ((unsigned char)messages[at] > 126)
            messages[at] = '?';
    put_text(messages);
    put("}");
}
