/*
 * A converter that has been taken over. `hijacked leave MARK` spoils all that another run could have in common with it;
 * `hijacked find KRAM`, the mark backwards, names on its error output what it finds of another run; `hijacked modes`
 * tries every way to mark files in its directory as set-uid, set-gid or sticky, and to change the file FILE of others by
 * `hijacked change FILE`; `hijacked allocate` tells how many pages of the server's heap have room. `hijacked --optfile X`
 * takes both from its input, as a waiting ogr2ogr does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024, PAGE = 4096, LARGE_PAGE = 2 << 20, PLACE = 12345, PSEUDO_MERCATOR = 3857, SYS_FCHMODAT2 = 452 };
enum { LEFT_FLAGS = O_NONBLOCK | O_APPEND | O_NOATIME };

/* Of GDAL, if it is there to be linked with. */
void *OSRNewSpatialReference(const char *) __attribute__((weak));
int OSRImportFromEPSG(void *, int) __attribute__((weak));
void GDALAllRegister(void) __attribute__((weak));

/* What a program may change of itself, and what only the loader has: each has room for a mark. */
static char changeable[256] = "nothing";
static const struct {
    const void *relocated;
    char room[256];
} loaded = {&loaded, "nothing"};

/* Write the beginning of the mark into both. */
static void mark_data(const char *mark)
{
    uintptr_t page = (uintptr_t)&loaded & ~(uintptr_t)(PAGE - 1);
    strncpy(changeable, mark, sizeof changeable - 1);
    if (mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_WRITE) == 0)
        strncpy((char *)loaded.room, mark, sizeof loaded.room - 1);
    else
        dprintf(2, "the data of the loader cannot be changed\n");
}

static void leave(const char *mark)
{
    mark_data(mark);
    for (int number = 0; number < DESCRIPTORS; number++) {
        int flags = fcntl(number, F_GETFL);
        if (flags < 0)
            continue;
        fcntl(number, F_SETFL, flags | O_NONBLOCK);
        fcntl(number, F_SETFL, flags | LEFT_FLAGS);
        fcntl(number, F_SETFL, flags | LEFT_FLAGS | O_DIRECT);
        flock(number, LOCK_EX);
        fcntl(number, F_SETLEASE, F_RDLCK);
        lseek(number, PLACE, SEEK_SET);
    }
}

static int is_own_file(int number)
{
    char path[4096];
    struct stat found, database;
    const char *directory = getenv("PROJ_LIB");
    snprintf(path, sizeof path, "%s/proj.db", directory ? directory : "");
    return number <= STDERR_FILENO ||
           (fstat(number, &found) == 0 && stat(path, &database) == 0 && found.st_ino == database.st_ino);
}

static void find_descriptions(void)
{
    for (int number = 0; number < DESCRIPTORS; number++) {
        int flags = fcntl(number, F_GETFL);
        if (flags < 0)
            continue;
        if (!is_own_file(number))
            dprintf(2, "descriptor %d is open\n", number);
        if (flags & (LEFT_FLAGS | O_DIRECT))
            dprintf(2, "descriptor %d has flags %o\n", number, flags);
        if (number > STDERR_FILENO && lseek(number, 0, SEEK_CUR) == PLACE)
            dprintf(2, "descriptor %d stands elsewhere\n", number);
        if (number > STDERR_FILENO && flock(number, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
            dprintf(2, "descriptor %d is locked\n", number);
        if (fcntl(number, F_GETLEASE) == F_RDLCK)
            dprintf(2, "descriptor %d has a lease\n", number);
    }
}

/* Whether `mark` stands backwards at some place of a stretch of memory. Itself it stands forwards. */
static int holds(const char *from, const char *to, const char *mark)
{
    size_t length = strlen(mark);
    for (; from + length <= to; from++) {
        size_t place = 0;
        while (place < length && from[place] == mark[length - 1 - place])
            place++;
        if (place == length)
            return 1;
    }
    return 0;
}

static int find_in_library(struct dl_phdr_info *library, size_t size, void *mark)
{
    (void)size;
    for (int number = 0; number < library->dlpi_phnum; number++) {
        const ElfW(Phdr) *part = library->dlpi_phdr + number;
        const char *start = (const char *)(library->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_LOAD && part->p_flags & PF_W && holds(start, start + part->p_memsz, mark))
            dprintf(2, "the memory of %s holds the mark\n", library->dlpi_name);
    }
    return 0;
}

static void find_in_heap(const char *mark)
{
    unsigned char resident;
    char *end = (char *)((uintptr_t)sbrk(0) & ~(uintptr_t)(PAGE - 1)), *start = end;
    while (mincore(start - PAGE, PAGE, &resident) == 0)
        start -= PAGE;
    if (holds(start, end, mark))
        dprintf(2, "the heap holds the mark\n");
}

static void find_trouble(void)
{
    struct itimerval timer = {{0, 0}, {0, 0}};
    if (getitimer(ITIMER_REAL, &timer) == 0 && timer.it_value.tv_sec)
        dprintf(2, "a timer runs\n");
    if (OSRImportFromEPSG && OSRImportFromEPSG(OSRNewSpatialReference(NULL), PSEUDO_MERCATOR) != 0)
        dprintf(2, "EPSG:3857 is not known\n");
}

static void try_modes(void)
{
    int file = open("plain", O_CREAT | O_RDWR, 0644);
    mkdir("directory", 0755);
    fchmod(file, 06755);
    chmod("plain", 06755);
    chmod("directory", 07777);
    fchmodat(AT_FDCWD, "plain", 06755, 0);
    syscall(SYS_FCHMODAT2, AT_FDCWD, "plain", 06755, 0);
    open("made", O_CREAT | O_WRONLY, 06755);
    creat("created", 06755);
    mkdir("sticky", 07777);
    mkdirat(AT_FDCWD, "sticky too", 07777);
    umask(0);
    open("made with no mask", O_CREAT | O_WRONLY, 06777);
}

/* What Landlock alone does not refuse about a file of one's own user. */
static int changes(const char *path)
{
    struct timeval times[2] = {{1, 0}, {1, 0}};
    struct timespec exact[2] = {{1, 0}, {1, 0}};
    int file = open(path, O_RDONLY);
    int changed = chmod(path, 0600) == 0;
    changed += fchmod(file, 0600) == 0;
    changed += utimes(path, times) == 0;
    changed += utimensat(AT_FDCWD, path, exact, 0) == 0;
    changed += futimens(file, exact) == 0;
    changed += truncate(path, 0) == 0;
    changed += open(path, O_RDONLY | O_TRUNC) >= 0;
    changed += fcntl(file, F_SETLEASE, F_RDLCK) == 0;
    changed += flock(file, LOCK_EX | LOCK_NB) == 0;
    changed += open(path, O_RDWR) >= 0;
    changed += rename(path, "taken") == 0;
    changed += unlink(path) == 0;
    return changed;
}

/* Tell in how many pages of the server's heap, which ends with a large page, there is a free piece. */
static void allocate(void)
{
    static char has_piece[1 << 16];
    const char *end = (char *)((uintptr_t)sbrk(0) & ~(uintptr_t)(LARGE_PAGE - 1));
    int pages = 0;
    for (size_t size = 1024; size; size -= 16)
        for (char *piece = malloc(size); piece && piece < end; piece = malloc(size))
            pages += !has_piece[(size_t)(end - piece) / PAGE % sizeof has_piece]++;
    dprintf(2, "%d\n", pages);
}

static int act(const char *action, const char *argument)
{
    if (!strcmp(action, "leave")) {
        leave(argument);
    } else if (!strcmp(action, "find")) {
        find_descriptions();
        dl_iterate_phdr(find_in_library, (void *)argument);
        find_in_heap(argument);
        find_trouble();
    } else if (!strcmp(action, "modes")) {
        try_modes();
    } else if (!strcmp(action, "allocate")) {
        allocate();
    } else if (!strcmp(action, "change")) {
        return changes(argument);
    }
    return 0;
}

int main(int count, char **arguments)
{
    static char text[8192], action[4096], argument[4096];
    /* As ogr2ogr does; in a fork server's child it is done already. */
    if (GDALAllRegister)
        GDALAllRegister();
    if (count > 1 && !strcmp(arguments[1], "--optfile")) {
        if (fread(text, 1, sizeof text - 1, stdin) == 0 || sscanf(text, "\"%4095[^\"]\"\n\"%4095[^\"]\"", action, argument) < 1)
            return 2;
    } else if (count > 1) {
        strncpy(action, arguments[1], sizeof action - 1);
        strncpy(argument, count > 2 ? arguments[2] : "", sizeof argument - 1);
    }
    return act(action, argument);
}
