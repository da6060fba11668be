/*
 * Makes the system calls that the file `in` lists, one a line, and writes what became of each to `out`: 0, or the number
 * of the error. A line is the number of the call and its arguments, separated by tabs: `i` and an integer, `s` and a
 * text, `b` and a number of zero bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ARGUMENTS = 6, ROOM = 4096 };

static long argument_of(char *text, char *room)
{
    if (!text)
        return 0;
    if (*text == 's')
        return (long)(text + 1);
    if (*text == 'b')
        return (long)memset(room, 0, ROOM);
    return strtol(text + 1, NULL, 0);
}

static int attempt(char *line)
{
    static char rooms[ARGUMENTS][ROOM];
    char *rest = line;
    long number = strtol(strsep(&rest, "\t"), NULL, 10), given[ARGUMENTS];
    for (int place = 0; place < ARGUMENTS; place++)
        given[place] = argument_of(strsep(&rest, "\t"), rooms[place]);
    long result = syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    int error = result < 0 ? errno : 0;
    if (number == SYS_openat && result > STDERR_FILENO)
        close((int)result);
    return error;
}

int main(void)
{
    static char line[ROOM];
    FILE *in = fopen("in", "r"), *out = fopen("out", "w");
    while (in && out && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = 0;
        fprintf(out, "%d\n", attempt(line));
        fflush(out);
    }
    return !in || !out || fclose(out);
}
