/* The commands of a session: a length of four bytes, then texts that end with a zero. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "question.h"

enum { PATIENCE_MS = 180000, MOST_BYTES = 16 << 20 };

/* A run that has waited in vain ends by a signal, which says nothing of the file: the service may have been suspended, and
 * then starts the file again. */
static int read_all(int questions, char *into, size_t size)
{
    for (size_t got = 0; got < size;) {
        struct pollfd waited = {.fd = questions, .events = POLLIN};
        if (poll(&waited, 1, PATIENCE_MS) == 0)
            raise(SIGALRM);
        ssize_t found = read(questions, into + got, size - got);
        if (found < 0 && errno == EINTR)
            continue;
        if (found <= 0)
            return 0;
        got += (size_t)found;
    }
    return 1;
}

char **next_command(int questions)
{
    uint32_t size;
    if (!read_all(questions, (char *)&size, sizeof size) || !size || size > MOST_BYTES)
        return NULL;
    char *text = malloc(size + 1), **texts = calloc((size_t)size + 8, sizeof *texts);
    if (!text || !texts || !read_all(questions, text, size))
        return NULL;
    text[size] = 0;
    size_t number = 0;
    for (char *at = text; at < text + size; at += strlen(at) + 1)
        texts[number++] = at;
    return texts;
}

char **take_list(char ***at)
{
    char **list = *at;
    while (**at && ***at)
        (*at)++;
    if (**at)
        *(*at)++ = NULL;
    return list;
}
