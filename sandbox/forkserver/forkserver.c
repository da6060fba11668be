/*
 * Turns the genuine ogr2ogr into a fork server. This library is preloaded and runs before main(): it registers the drivers
 * and opens PROJ's database once. For every command from the spawner, it then forks a child, which applies the isolation
 * layers to itself and continues with the real main(). The server itself never runs main() and never sees a byte of an
 * untrusted file, so nothing is carried from one command to the next.
 *
 * clone(CLONE_PARENT) makes the child a child of the spawner, which watches and reaps it. Fork handlers do not run: those
 * of PROJ and GDAL would discard what was just prepared. This is safe while the server has one thread.
 *
 * Most of the cost of a command is the copying of page tables, the page faults of a new copy, and what main() does apart
 * from converting. Therefore drivers are registered once, a process that is about to end frees nothing, the heap and the
 * code of GDAL and PROJ are in large pages, and the data of libraries is in a file in memory.
 *
 * Nothing passes from one command to another: a child opens its own file descriptions, because those of a fork share
 * flags, locks and leases, and the text of a command is wiped as soon as its child has read it.
 *
 * sandbox/isolation and sandbox/isolation/policy.py say what the layers do, and why in this order. The spawner sends them
 * as steps: system calls that are made here in order, whatever their purpose. See sandbox/isolation/steps.py, and
 * sandbox/launchers/ogr2ogr_server.py for the message that contains them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers.h"
#include "gdal.h"
#include "heap.h"
#include "large_pages.h"
#include "library_data.h"
#include "mappings.h"
#include "proj_database.h"
#include "session.h"
#include "warmup.h"

/* The steps follow, then strings: arguments, environment. */
struct request {
    uint32_t step_bytes, arguments, variables, unused;
};

/* One layer; its steps follow, then the data that they point to. */
struct part {
    char layer[32];
    uint32_t steps, data_bytes;
};

/* A system call. It ends the run unless it returns `expected` (if that is set) or fails with `tolerated`. */
struct step {
    int64_t number, arguments[6], expected, tolerated, result;
    uint8_t kinds[8];
};

/* The meaning of an argument: a value, an offset of data, the number of a step for its result, or of a descriptor sent. */
enum kind { VALUE, ADDRESS, RESULT, DESCRIPTOR };
/* Not a system call: writes the given number of bytes of a value to an address. */
enum { STORE = -1 };
#define ANYTHING INT64_MIN

enum { MESSAGE_BYTES = 1 << 18, STRINGS = 4096, NEVER_STARTED = 120, MOST_SENT = 4 };

typedef int main_function(int, char **, char **);

#define SESSION "--session"
enum { SESSION_ARGUMENTS = 4 };

static main_function *real_main;
static _Alignas(8) char message[MESSAGE_BYTES];
static int control, error_end;
/* The descriptors that the steps need follow these two. */
static int sent[MOST_SENT];

static void fail(const char *what)
{
    dprintf(control, "%s: %s", what, strerror(errno));
    _exit(NEVER_STARTED);
}

static void need(int result, const char *what)
{
    if (result < 0)
        fail(what);
}

static int64_t value_of(const struct step *steps, const struct step *step, int place, char *data)
{
    int64_t given = step->arguments[place];
    switch (step->kinds[place]) {
    case ADDRESS:
        return (int64_t)(data + given);
    case RESULT:
        return steps[given].result;
    case DESCRIPTOR:
        return sent[given];
    default:
        return given;
    }
}

static void take_step(struct step *step, const int64_t *values, const char *layer)
{
    if (step->number == STORE) {
        memcpy((char *)values[0], &values[1], (size_t)values[2]);
        return;
    }
    step->result = syscall(step->number, values[0], values[1], values[2], values[3], values[4], values[5]);
    if (step->result < 0 && errno != step->tolerated)
        fail(layer);
    if (step->expected != ANYTHING && step->result != step->expected) {
        errno = ESRCH;
        fail(layer);
    }
}

/* Apply all layers. */
static void take_steps(char *next, const char *end)
{
    while (next < end) {
        struct part *part = (struct part *)next;
        struct step *steps = (struct step *)(part + 1);
        char *data = (char *)(steps + part->steps);
        for (struct step *step = steps; (char *)step < data; step++) {
            int64_t values[6];
            for (int place = 0; place < 6; place++)
                values[place] = value_of(steps, step, place, data);
            take_step(step, values, part->layer);
        }
        next = data + part->data_bytes;
    }
}

static char *take_strings(char *text, char **into, uint32_t count)
{
    for (uint32_t number = 0; number < count; number++, text += strlen(text) + 1)
        into[number] = text;
    into[count] = NULL;
    return text;
}

/* Reopen the files that this child shares with the server, under the same descriptor numbers. */
static void own_descriptions(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    need(null, "/dev/null");
    need(dup2(null, STDIN_FILENO), "descriptors");
    need(dup2(null, STDOUT_FILENO), "descriptors");
    need(dup2(error_end, STDERR_FILENO), "descriptors");
    close(null);
    need(take_own_database(), "descriptors");
    close_own_database();
}

/* Run the program, or a conversation with it. */
static int run_main(int argc, char **argv, char **environment)
{
    if (argc == SESSION_ARGUMENTS && strcmp(argv[1], SESSION) == 0)
        return converse(argv[2], argv[3]);
    return real_main(argc, argv, environment);
}

static void become(int link)
{
    static char *arguments[STRINGS], *variables[STRINGS];
    struct request *request = (struct request *)message;
    char *steps = (char *)(request + 1), *strings = steps + request->step_bytes;
    char word;

    dprintf(control, "P%d", (int)getpid());
    own_descriptions();
    take_steps(steps, strings);
    /* One command, one process: a child that comes too late never gets the signal to continue. */
    if (read(control, &word, 1) != 1)
        _exit(NEVER_STARTED);
    close(link);
    close(control);
    close(error_end);
    for (int number = 0; number < MOST_SENT; number++)
        close(sent[number]);
    if (request->arguments >= STRINGS || request->variables >= STRINGS)
        _exit(NEVER_STARTED);
    take_strings(take_strings(strings, arguments, request->arguments), variables, request->variables);
    environ = variables;
    are_registered = 1;
    int code = run_main((int)request->arguments, arguments, variables);
    fflush(NULL);
    /* Not exit(): the destructors of a hundred libraries cost more than a small conversion. */
    _exit(code);
}

static size_t receive(int link, int *descriptors, int most, int *count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE((2 + MOST_SENT) * sizeof(int))];
    } extra;
    struct iovec part = {message, sizeof message - 1};
    struct msghdr envelope = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &extra, .msg_controllen = sizeof extra};
    ssize_t size = recvmsg(link, &envelope, MSG_CMSG_CLOEXEC);
    if (size <= 0)
        _exit(0);
    message[size] = 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&envelope);
    *count = header ? (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
    if (*count < 2 || *count > most || (size_t)size < sizeof(struct request))
        _exit(1);
    memcpy(descriptors, CMSG_DATA(header), (size_t)*count * sizeof(int));
    return (size_t)size;
}

/* Do once what every conversion does, so that children inherit the result; nothing, where the program shows none of GDAL or
 * PROJ. */
static void get_ready(void)
{
    /* A function of each library that every conversion uses much: GDAL, PROJ and that of C++. */
    static const char *const busy[] = {"GDALOpenEx", "proj_context_create", "__dynamic_cast", NULL};
    prepare_drivers();
    if (proj_context_create)
        find_database();
    warm_up();
    for (const char *const *name = busy; *name; name++)
        move_into_large_pages(dlsym(RTLD_NEXT, *name));
    join_mappings();
    move_data_into_file();
    settle_heap();
}

static int serve(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv, (void)environment;
    int link = atoi(getenv("SANDBOX_LINK"));
    int *thread_id = NULL;
    unsetenv("LD_PRELOAD");
    unsetenv("SANDBOX_LINK");
    get_ready();
    prctl(PR_GET_TID_ADDRESS, &thread_id, 0, 0, 0);
    if (!knows_its_descriptors(link) || write(link, "ready", 5) != 5)
        return 1;
    for (;;) {
        int descriptors[2 + MOST_SENT], count;
        memset(descriptors, -1, sizeof descriptors);
        size_t size = receive(link, descriptors, 2 + MOST_SENT, &count);
        control = descriptors[0];
        error_end = descriptors[1];
        memcpy(sent, descriptors + 2, sizeof sent);
        open_own_database();
        /* The kernel writes the thread's id where the C library keeps it, as in its own fork(). */
        unsigned long flags = CLONE_PARENT | SIGCHLD | (thread_id ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0);
#ifdef __aarch64__
        long child = syscall(SYS_clone, flags, NULL, NULL, NULL, thread_id);
#else
        long child = syscall(SYS_clone, flags, NULL, NULL, thread_id, NULL);
#endif
        if (child == 0)
            become(link);
        if (child < 0)
            dprintf(control, "fork: %s", strerror(errno));
        memset(message, 0, size);
        close_own_database();
        for (int number = 0; number < count; number++)
            close(descriptors[number]);
    }
}

/* Replaces the C library's entry function: passes our main to the real one, in place of the program's. */
__attribute__((visibility("default"))) int
__libc_start_main(main_function *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                  void (*loader_fini)(void), void *stack_end)
{
    int (*real)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *) =
        (int (*)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *))dlsym(
            RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return real(getenv("SANDBOX_LINK") ? serve : run_main, argc, argv, init, fini, loader_fini, stack_end);
}
