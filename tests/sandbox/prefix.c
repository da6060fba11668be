/* Sees values that begin within a character and then differ; says whether the byte before the first one was changed. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

enum { WITHIN = 0x80 };
static char room[64] = {(char)WITHIN}, *next = room + 1;

/* A copy; the first is behind a byte that is within a character, too. */
static char *copied(const char *text)
{
    char *copy = strcpy(next, text);
    next += strlen(text) + 1;
    return copy;
}

#define strdup copied
#include "../../sandbox/forkserver/columns.c"

const char *refused;

int CPLIsUTF8(const char *text, int size)
{
    return (void)text, size == 0;
}

void put(const char *format, ...)
{
    (void)format;
}

void put_text(const char *text)
{
    (void)text;
}

void put_number(double number)
{
    (void)number;
}

int main(void)
{
    char *texts[] = {"\x80 first", "second"};
    struct column column = {.type = STRING};
    for (int number = 0; number < 2; number++)
        examine_value(&column, NULL, 0, &(union value){.string = texts[number]}, number + 1);
    return room[0] == (char)WITHIN && room[1] == 0 && refused ? 0 : 1;
}
